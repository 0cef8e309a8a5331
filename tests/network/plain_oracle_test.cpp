// The engine against plain PyTorch in float64 (python/rotrnn/plain), on cases that
// tests/golden/plain_torch.py has drawn before the tests.
#include "rotrnn/training/optimiser.h"
#include "tests/layers/double_layer.h"
#include "tests/network/layer_checks.h"
#include "tests/network/network_checks.h"

namespace rotrnn {
namespace {

using testing::cases_of;
using testing::DoubleLayer;
using testing::Doubles;
using testing::doubles;
using testing::expect_close;
using testing::NetworkCase;
using testing::options_of;
using testing::Recorded;

/// f(file, name, settings) of every case; the test is skipped where the script found no PyTorch.
template <class F>
void for_cases(const char* name, size_t at_least, const F& f) {
  const std::filesystem::path folder = ROTRNN_PLAIN;
  if (std::filesystem::exists(folder / "skipped")) GTEST_SKIP() << "PyTorch is not installed";
  const SafeTensorFile file(folder / name);  // throws where there is none
  const nlohmann::json cases = cases_of(file);
  EXPECT_GE(cases.size(), at_least);
  for (const auto& [key, settings] : cases.items()) {
    SCOPED_TRACE(key + ": " + settings.dump());
    f(file, key, settings);
  }
}

template <class F>
void for_networks(const char* name, size_t at_least, const F& f) {
  for_cases(name, at_least, [&](const auto& file, const auto& key, const auto& settings) {
    NetworkCase c(file, key, settings);
    f(c, settings);
  });
}

// ---------------------------------------------------------------- layers

TEST(PlainLayers, TwinsInDouble) {
  for_cases("layers.safetensors", 140, [](const auto& file, const auto& key, const auto& settings) {
    const Recorded r(file, key);
    DoubleLayer layer(options_of(settings));
    const std::string grown = r.has("grown_buffer/length") ? "grown_" : "";
    for (const auto& [tensor, values] : layer.values().tensors) {
      const std::string parameter = grown + "param/" + tensor;
      const Doubles recorded = r[r.has(parameter) ? parameter : "buffer/" + tensor];
      ASSERT_EQ(recorded.size(), values.size()) << tensor;
      std::copy(recorded.begin(), recorded.end(), values.begin());
    }
    if (r.has("buffer/length")) layer.length() = r.integers(grown + "buffer/length")[0];
    const int64_t D = settings.at("width");
    const auto states = [&](const std::string& tensor) {
      TwinStates s{r[tensor], r[tensor + "_reverse"]};
      if (settings.at("layer") != "s4d") return s;  // those of channels are [N, D]
      for (Doubles* plane : {&s.forward, &s.reverse}) {
        const Doubles from = *plane;
        const size_t each = layer.state_size() / 2, width = static_cast<size_t>(D);
        for (size_t i = 0; i < from.size(); ++i) {
          const size_t at = i % each, n = each / width;
          (*plane)[i - at + at % n * width + at / n] = from[i];
        }
      }
      return s;
    };
    const testing::DoubleBatch batch{r.integers("offsets"), r["u"], states("initial")};
    const auto result = layer.forward(batch);
    expect_close(result.y, r["y"], 1e-10, "y");
    if (r.has("final")) {
      expect_close(result.final.forward, states("final").forward, 1e-10, "final");
      expect_close(result.final.reverse, states("final").reverse, 1e-10, "final_reverse");
    }
    const auto g = layer.backward(batch, r["dy"], states("dfinal"));
    expect_close(g.u, r["grad_u"], 1e-8, "gradient of u");
    if (r.has("initial")) {
      const TwinStates expected = states("grad_initial");
      expect_close(g.initial.forward, expected.forward, 1e-8, "gradient of the states");
      expect_close(g.initial.reverse, expected.reverse, 1e-8, "gradient of the reverse states");
    }
    for (const auto& [tensor, gradient] : layer.gradients()) {
      expect_close(gradient, r["grad/" + tensor], 1e-8, "gradient of " + tensor);
    }
  });
}

// As of tests/fixtures, in single_layer_test.cpp.
TEST(PlainLayers, TwinsInFloat32) {
  for_cases("layers.safetensors", 140, [](const auto& file, const auto& key, const auto& settings) {
    testing::expect_recorded(file, key, options_of(settings), Kernels::reference,
                             MemoryMode::normal, {1e-7, 1e-7});
  });
}

TEST(PlainLayers, FusedKernels) {
  for_cases("layers.safetensors", 140, [](const auto& file, const auto& key, const auto& settings) {
    for (const MemoryMode memory : {MemoryMode::normal, MemoryMode::low}) {
      testing::expect_recorded(file, key, options_of(settings), Kernels::fused, memory,
                               {2e-5, 3e-4});
    }
  });
}

// ---------------------------------------------------------------- networks

// A few times the rounding of float32.
constexpr double kCancelled = 3e-7;

TEST(PlainNetworks, Twins) {
  for_networks("networks.safetensors", 90,
               [](NetworkCase& c, const auto&) { testing::expect_twins(c, 1e-12); });
}

TEST(PlainNetworks, FusedKernels) {
  for_networks("networks.safetensors", 90, [](NetworkCase& c, const auto&) {
    testing::expect_fused(c, MemoryMode::normal, 2, kCancelled);
  });
}

TEST(PlainNetworks, FusedKernelsWithLowMemory) {
  for_networks("networks.safetensors", 90, [](NetworkCase& c, const auto&) {
    testing::expect_fused(c, MemoryMode::low, 3, kCancelled);
  });
}

// ---------------------------------------------------------------- training

LearningRates rates_of(const nlohmann::json& settings) {
  return {settings.at("global_lr"), settings.at("recurrent_lr"), settings.at("weight_decay")};
}

std::string name_of(const char* kind, int64_t step, const char* what, const std::string& tensor) {
  return kind + ("/" + std::to_string(step)) + "/" + what + "/" + tensor;
}

// Each step rounds a parameter by 6e-8 of itself. The kernel takes 1 - β2 in float32, 1.3e-5 below
// 0.001: second moments have that error, and a step, which divides by their roots, half of it.
constexpr double kRounding = 1e-6, kSecond = 2e-5, kStep = 1e-5;

TEST(PlainTraining, OptimiserMovesTheParametersOfEveryGroup) {
  for_networks("training.safetensors", 24, [](NetworkCase& c, const auto& settings) {
    Weights& weights = c.network.weights();
    const std::vector<float> start(weights.parameters().all().begin(),
                                   weights.parameters().all().end());
    for (const char* kind : {"step", "noise"}) {
      std::copy(start.begin(), start.end(), weights.parameters().all().begin());
      Optimiser optimiser(c.network.layout());
      FlatArray gradients(c.network.layout());
      for (int64_t step = 1; step <= settings.at("steps"); ++step) {
        for (const auto& p : c.network.layout().parameters) {
          const Doubles g = c.recorded[name_of(kind, step, "grad", p.name)];
          std::copy(g.begin(), g.end(), gradients.of(p).begin());
        }
        optimiser.step(step, rates_of(settings), gradients, weights, 2);
        for (const auto& p : c.network.layout().parameters) {
          const double moved =
              static_cast<double>(step) * settings.at("global_lr").template get<double>();
          expect_close(doubles(weights.parameters().of(p)),
                       c.recorded[name_of(kind, step, "param", p.name)], kRounding, p.name,
                       kStep * moved);
        }
      }
      if (kind != std::string("step")) continue;
      for (const auto& p : c.network.layout().parameters) {
        double largest = 0;  // of the gradients, whose mean may be much smaller
        for (int64_t step = 1; step <= settings.at("steps"); ++step) {
          for (const double g : c.recorded[name_of(kind, step, "grad", p.name)]) {
            largest = std::max(largest, std::abs(g));
          }
        }
        expect_close(doubles(optimiser.first().of(p)), c.recorded["first/" + p.name], 0,
                     "first moment of " + p.name, kRounding * largest);
        expect_close(doubles(optimiser.second().of(p)), c.recorded["second/" + p.name], kSecond,
                     "second moment of " + p.name);
      }
    }
  });
}

// With gradients of its own. A gradient that is 0 but for rounding moves its parameter by the rate
// in some direction, so it is the losses that are compared: there it shows by the square of the
// rate.
TEST(PlainTraining, LossesFallAsTheyShould) {
  for_networks("training.safetensors", 24, [](NetworkCase& c, const auto& settings) {
    Workspace workspace;
    Optimiser optimiser(c.network.layout());
    FlatArray gradients(c.network.layout());
    for (int64_t step = 1; step <= settings.at("steps"); ++step) {
      c.input.dropout.step = step;
      const auto y = c.network.forward(c.input, workspace);
      std::vector<float> dy(y.size());
      const double loss = loss_of(c.loss, c.targets(), y.data(), c.outputs(), dy.data());
      const std::string at = "step/" + std::to_string(step) + "/loss";
      expect_close({loss}, c.recorded[at], 1e-4, at);
      c.network.backward({dy.data(), {}}, workspace, gradients);
      optimiser.step(step, rates_of(settings), gradients, c.network.weights(), 2);
    }
  });
}

}  // namespace
}  // namespace rotrnn
