// The fused kernels of a network: the same bits for any number of threads and whatever ran before,
// digits that long sequences keep, and errors beside those that ATen had.

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "tests/network/network_fixture.h"
#include "tests/network/passes.h"
#include "tests/support/numbers.h"

namespace rotrnn {
namespace {

using testing::fused;
using testing::Results;
using Case = testing::PassCase;

constexpr const char* kLayers[] = {"rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"};

Case case_of(const std::string& layer) {
  Case c;
  c.model = testing::odd_sizes();
  c.model.layer = layer;
  if (layer != "rotrnn") c.model.state = 14;
  c.model.s5.blocks = 1;
  c.model.bidirectional = true;
  c.model.dropout = 0.1;
  c.lengths = {90, 1, 300, 17, 64, 128};
  return c;
}

TEST(FusedEngine, SameBitsForAnyThreadCount) {
  for (const std::string layer : kLayers) {
    SCOPED_TRACE(layer);
    const Case c = case_of(layer);
    const Results one = fused(c, 3, MemoryMode::normal, 1);
    for (const int threads : {2, 3, 4}) {
      EXPECT_EQ(fused(c, 3, MemoryMode::normal, threads), one) << threads << " threads";
    }
  }
}

struct Gradients {
  explicit Gradients(const testing::Problem& p) : parameters(p.network.layout()) {
    std::fill(parameters.all().begin(), parameters.all().end(), NAN);  // overwritten, not added to
  }
  std::vector<float> all() const { return {parameters.all().begin(), parameters.all().end()}; }

  FlatArray parameters;
};

NetworkInput training(testing::Problem& p) {
  NetworkInput input = p.input.network;
  input.backward = true;
  return input;
}

std::vector<float> backward(testing::Problem& p, Workspace& workspace) {
  Gradients out(p);
  const std::vector<double> exact = p.input.dy({});
  const std::vector<float> dy(exact.begin(), exact.end());
  p.network.backward({dy.data(), {}}, workspace, out.parameters);
  return out.all();
}

TEST(FusedEngine, WorkspacesThatLiveTogetherDoNotShareMemory) {
  for (const std::string layer : kLayers) {
    SCOPED_TRACE(layer);
    Case c = case_of(layer), other = c;
    other.lengths = {10, 20};
    c.model.norm = other.model.norm = Norm::layer;  // no statistics move
    c.model.s4.max_length = other.model.s4.max_length = 300;
    testing::Problem a(c, 3), b(other, 3);
    Workspace one, two, three;
    a.network.forward(training(a), one);
    b.network.forward(training(b), two);
    const auto of_a = backward(a, one), of_b = backward(b, two);
    a.network.forward(training(a), three);
    EXPECT_EQ(backward(a, three), of_a);
    // A workspace that has seen a larger batch, and has been asked twice.
    b.network.forward(training(b), three);
    b.network.forward(training(b), three);
    EXPECT_EQ(backward(b, three), of_b);
  }
}

TEST(FusedEngine, MapsMayBeUsedAgainWhileTheWeightsAreTheSame) {
  for (const std::string layer : kLayers) {
    SCOPED_TRACE(layer);
    Case c = case_of(layer);
    c.evaluating = true;
    testing::Problem p(c, 3);
    Workspace workspace;
    NetworkInput input = p.input.network;
    const auto forward = [&] {
      const auto y = p.network.forward(input, workspace);
      return std::vector<float>(y.begin(), y.end());
    };
    const auto first = forward();
    input.same_weights = true;
    EXPECT_EQ(forward(), first);
    for (float& x : p.network.weights().parameters().all()) x *= 1.01f;
    input.same_weights = false;
    EXPECT_NE(forward(), first);
  }
}

TEST(FusedEngine, SecondBackwardIsRefused) {
  for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
    testing::Problem p(case_of("rotrnn"), 3);
    p.network.engine.kernels = kernels;
    Workspace workspace;
    EXPECT_THROW(backward(p, workspace), std::logic_error) << "no forward pass";
    p.network.forward(p.input.network, workspace);
    EXPECT_THROW(backward(p, workspace), std::logic_error) << "one that keeps nothing";
    p.network.forward(training(p), workspace);
    EXPECT_NO_THROW(backward(p, workspace));
    EXPECT_THROW(backward(p, workspace), std::logic_error) << "it was used";
  }
}

// Up to a million steps with the slowest decay of the paper: the error stays that of plain floats,
// and small, because nothing sums angles.
TEST(FusedEngine, LongSequencesKeepTheirDigits) {
  for (const int64_t length : {4096, 65536, 1 << 20}) {
    Case c;
    c.model.width = 4;
    c.model.state = 8;
    c.model.rotrnn.heads = 2;
    c.model.depth = 1;
    c.model.norm = Norm::layer;
    c.model.pooling = Pooling::last;
    c.model.rotrnn.init.theta_max = 3;
    c.shape = {InputKind::channels, 1, TargetKind::values, 2};
    c.lengths = {length};
    testing::Problem p(c, 3);
    for (float& x : p.network.weights().find("blocks.0.layer.gamma_log")) {
      x = static_cast<float>(std::log(-std::log(0.9999)));
    }
    LayerMaps maps;
    const NetworkLayers layers(c.model, p.network.weights());
    maps.forward(c.model, layers.values, length, 1, false);
    const auto twin = [&]<class T>(T) {
      TwinPass<T> pass;
      pass.forward(c.model, c.shape, {}, p.network.weights(), maps,
                   {p.input.network.batch, Mode::evaluate, {}, {}});
      return pass.final()[0].forward;
    };
    std::vector<float> final(p.network.state_size());
    NetworkInput input = p.input.network;
    input.mode = Mode::evaluate;
    input.final = {{final.data(), nullptr}};
    Workspace workspace;
    p.network.forward(input, workspace);
    const auto exact = twin(0.0);
    const double plain = testing::relative_error(twin(0.0f), exact);
    const double error = testing::relative_error(final, exact);
    fmt::print("length {}: error of the final state {:.1e} fused, {:.1e} plain\n", length, error,
               plain);
    EXPECT_LE(error, 4 * std::max(plain, 5e-7));
    EXPECT_LE(error, 2e-3);
  }
}

// ---------------------------------------------------------------- what ATen had

// Squares of largest errors, ours and ATen's in float32, and of largest values.
struct Squares {
  double ours = 0, theirs = 0, values = 0;
};

// Of one name of tensors, over all recorded networks and their blocks: a single maximum is luck.
TEST(FusedEngine, ErrorsAreWithinFourTimesThoseOfAten) {
  const SafeTensorFile file = testing::open_fixture("networks.safetensors");
  const nlohmann::json cases = testing::cases_of(file);
  for (const auto memory : {MemoryMode::normal, MemoryMode::low}) {
    std::map<std::string, Squares> squares;
    for (const auto& [name, settings] : cases.items()) {
      SCOPED_TRACE(name);
      if (settings.at("layer") == "s4d" && name.starts_with("states")) continue;  // reverse states
      testing::NetworkCase c(file, name, settings);
      c.load("grown_param/", "grown_buffer/");
      c.network.engine.memory = memory;
      testing::PassInput in;
      in.network = c.input;
      for (size_t l = 0; l < c.depth() && c.recorded.has("dfinal/0"); ++l) {
        const auto states = [&](const std::string& tensor) {
          const auto forward = c.states(tensor, l), reverse = c.states(tensor + "_reverse", l);
          return TwinStatesOf<float>{{forward.begin(), forward.end()},
                                     {reverse.begin(), reverse.end()}};
        };
        in.initial.push_back(states("initial"));
        in.dfinal.push_back(states("dfinal"));
      }
      in.dy = [&](const std::vector<double>& y) {
        std::vector<double> dy(y.size());
        loss_of(c.loss, c.targets(), y.data(), c.outputs(), dy.data());
        return dy;
      };
      const Results results = run_fused(c.network, in);
      const auto add = [&](const std::string& tensor, const std::string& ours) {
        if (!c.recorded.has(tensor)) return;
        const auto exact = c.recorded[tensor];
        const auto& got = results.at(ours);
        ASSERT_EQ(got.size(), exact.size()) << tensor;
        double error = 0, largest = 0;
        for (size_t i = 0; i < exact.size(); ++i) {
          error = std::max(error, std::abs(got[i] - exact[i]));
          largest = std::max(largest, std::abs(exact[i]));
        }
        static const std::regex number("blocks\\.[0-9]+");
        Squares& sum = squares[std::regex_replace(tensor, number, "blocks")];
        sum.ours += error * error;
        sum.theirs += std::pow(testing::float32_error(file, name, tensor), 2);
        sum.values += largest * largest;
      };
      add("y", "y");
      add("grad_values", "d input");
      for (const auto& p : c.network.layout().parameters) add("grad/" + p.name, "d " + p.name);
      for (const auto& b : c.network.layout().buffers) {
        if (b.name.find("running_") != std::string::npos) add("running/" + b.name, b.name);
      }
    }
    EXPECT_GT(squares.size(), 30u);
    for (const auto& [name, sum] : squares) {
      const double granted = std::pow(0x1p-24, 2) * sum.values;
      EXPECT_LE(std::sqrt(sum.ours), 4 * std::sqrt(std::max(sum.theirs, granted))) << name;
    }
  }
}

}  // namespace
}  // namespace rotrnn
