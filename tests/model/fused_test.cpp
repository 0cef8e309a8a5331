// The fused kernels against the reference path: the error against float64 may be at most four times
// that of the float32 reference.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <regex>

#include "rotrnn/layers/rotrnn_fused.h"
#include "rotrnn/model/sequence_model.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using test::relative_error;
using torch::Tensor;

struct Case {
  std::string name;
  ModelOptions model;
  DataShape shape{InputKind::channels, 3, TargetKind::classes, 4};
  std::vector<int64_t> lengths{5, 1, 70, 130};
  bool evaluating = false;
  bool states = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

ModelOptions base() {
  ModelOptions m;
  m.width = 13;
  m.state = 15;
  m.heads = 3;
  m.depth = 3;
  m.init.theta_max = 3;
  return m;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto activation : {Activation::half_glu1, Activation::full_glu, Activation::half_glu2,
                                Activation::gelu, Activation::exact_glu}) {
    for (const auto norm : {NormKind::batch, NormKind::layer}) {
      for (const bool prenorm : {true, false}) {
        for (const bool bidirectional : {true, false}) {
          Case c;
          c.model = base();
          c.model.activation = activation;
          c.model.norm = norm;
          c.model.prenorm = prenorm;
          c.model.bidirectional = bidirectional;
          c.name = fmt::format("activation{}_norm{}_pre{}_bi{}", static_cast<int>(activation),
                               static_cast<int>(norm), prenorm, bidirectional);
          out.push_back(c);
        }
      }
    }
  }
  auto add = [&](const char* name, auto change) {
    Case c;
    c.model = base();
    change(c);
    c.name = name;
    out.push_back(c);
  };
  add("dropout", [](Case& c) { c.model.dropout = 0.3; });
  add("dropout_exact", [](Case& c) {
    c.model.dropout = 0.3;
    c.model.activation = Activation::exact_glu;
  });
  add("dropout_gelu", [](Case& c) {
    c.model.dropout = 0.3;
    c.model.activation = Activation::gelu;
  });
  add("last", [](Case& c) { c.model.pooling = Pooling::last; });
  add("per_token", [](Case& c) { c.model.pooling = Pooling::none; });
  add("tokens", [](Case& c) { c.shape = {InputKind::tokens, 17, TargetKind::classes, 4}; });
  add("stationary", [](Case& c) { c.model.stationary_start = true; });
  add("stationary_bidirectional", [](Case& c) {
    c.model.stationary_start = true;
    c.model.bidirectional = true;
  });
  add("states", [](Case& c) { c.states = true; });
  add("states_bidirectional", [](Case& c) {
    c.states = true;
    c.model.bidirectional = true;
  });
  add("evaluating", [](Case& c) { c.evaluating = true; });
  add("evaluating_postnorm", [](Case& c) {
    c.evaluating = true;
    c.model.prenorm = false;
  });
  add("alpha", [](Case& c) { c.model.normalisation = Normalisation::alpha; });
  add("none_log_theta", [](Case& c) {
    c.model.normalisation = Normalisation::none;
    c.model.init.theta_form = ThetaForm::log;
  });
  add("fixed_rotation", [](Case& c) { c.model.learn_rotation = false; });
  add("one_token", [](Case& c) {
    c.lengths = {1, 1};
    c.model.norm = NormKind::layer;
  });
  add("wide", [](Case& c) {
    c.model.width = 64;
    c.model.state = 96;
    c.model.heads = 8;
    c.lengths = {300, 7, 450};
  });
  add("one_head", [](Case& c) {
    c.model.heads = 1;
    c.model.state = 11;
  });
  for (const char* layer : {"lru", "s5"}) {
    for (const bool bidirectional : {false, true}) {
      for (const bool other : {false, true}) {
        add("", [&](Case& c) {
          c.model.layer = layer;
          c.model.state = 14;
          c.model.s5.blocks = 1;
          c.model.bidirectional = bidirectional;
          c.states = true;
          if (other) {
            c.model.lru.gamma = LruGamma::fixed;
            c.model.s5.discretisation = Discretisation::bilinear;
            c.model.s5.clip = true;
            c.evaluating = bidirectional;
          }
        });
        out.back().name = fmt::format("{}_bi{}_other{}", layer, bidirectional, other);
      }
    }
  }
  for (const char* layer : {"s4d", "s4", "liquid_s4"}) {
    for (const bool bidirectional : {false, true}) {
      for (const bool other : {false, true}) {
        add("", [&](Case& c) {
          c.model.layer = layer;
          c.model.state = 14;
          c.model.bidirectional = bidirectional;
          c.model.activation = other ? Activation::half_glu2 : Activation::exact_glu;
          c.model.prenorm = !other;
          c.model.dropout = 0.2;
          c.model.liquid_s4.degree = other ? 3 : 2;
          // Where there are many of one length, S4D is run as a convolution.
          if (other != bidirectional) c.lengths = {40, 40, 1, 40, 39, 40, 40, 40};
          c.evaluating = other && bidirectional;
        });
        out.back().name = fmt::format("{}_bi{}_other{}", layer, bidirectional, other);
      }
    }
  }
  return out;
}

// Everything that one pass gives, by name.
using Results = std::map<std::string, Tensor>;

Results run(const Case& c, torch::ScalarType type, const EngineOptions& engine, uint64_t seed) {
  SequenceModel model(c.model, c.shape, seed);
  model->to(type);
  model->engine = engine;
  std::vector<int64_t> offsets{0}, numbers;
  for (int64_t length : c.lengths) {
    offsets.push_back(offsets.back() + length);
    numbers.push_back(100 + static_cast<int64_t>(numbers.size()));
  }
  torch::manual_seed(seed);
  const bool tokens = c.shape.input == InputKind::tokens;
  // Drawn in float32, so that all types see the same numbers.
  const Tensor drawn = tokens ? torch::randint(c.shape.inputs, {offsets.back()}, torch::kInt64)
                              : torch::randn({offsets.back(), c.shape.inputs});
  const Packed input(tokens ? drawn : drawn.to(type).requires_grad_(), offsets);
  const auto batch = static_cast<int64_t>(c.lengths.size());
  std::vector<States> initial;
  if (c.states) {
    const int64_t planes = 2 * diagonal(*model->blocks[0]->layer).system().states();
    auto draw = [&] { return torch::randn({batch, planes}).to(type).requires_grad_(); };
    for (int64_t i = 0; i < c.model.depth; ++i) {
      initial.push_back({draw(), c.model.bidirectional ? draw() : Tensor()});
    }
  }
  if (c.evaluating) {
    torch::NoGradGuard no_grad;
    for (auto& buffer : model->named_buffers()) {
      if (buffer.value().is_floating_point()) buffer.value().add_(0.3);
    }
    model->eval();
  }
  const ModelOutput out = model->forward(input, {5, 2, numbers}, initial);
  Results results{{"y", out.y}};
  Tensor loss = (out.y * torch::randn(out.y.sizes()).to(type)).sum();
  for (size_t i = 0; c.states && i < out.final.size(); ++i) {
    const Tensor& final = out.final[i].forward;
    results[fmt::format("final{}", i)] = final;
    loss = loss + (final * torch::randn(final.sizes()).to(type)).sum();
    if (c.model.bidirectional) {
      const Tensor& reverse = out.final[i].reverse;
      results[fmt::format("final_reverse{}", i)] = reverse;
      loss = loss + (reverse * torch::randn(reverse.sizes()).to(type)).sum();
    }
  }
  loss.backward();
  for (const auto& p : model->named_parameters()) {
    results["d " + p.key()] =
        p.value().grad().defined() ? p.value().grad() : torch::zeros_like(p.value());
  }
  for (const auto& buffer : model->named_buffers()) results[buffer.key()] = buffer.value();
  if (!tokens) results["d input"] = input.values.grad();
  for (size_t i = 0; i < initial.size(); ++i) {
    results[fmt::format("d initial{}", i)] = initial[i].forward.grad();
    if (c.model.bidirectional) {
      results[fmt::format("d initial_reverse{}", i)] = initial[i].reverse.grad();
    }
  }
  return results;
}

// Squares of a tensor's errors and of its values, and the values, summed over elements and seeds.
struct Errors {
  double square = 0, values = 0, sum = 0;

  void add(const Tensor& actual, const Tensor& exact) {
    square += (actual.to(torch::kFloat64) - exact).square().sum().item<double>();
    values += exact.square().sum().item<double>();
    sum += exact.sum().item<double>();
  }
};

// One name for a parameter of all blocks.
std::string of_all_blocks(const std::string& name) {
  static const std::regex number("blocks\\.[0-9]+");
  return std::regex_replace(name, number, "blocks");
}

class Fused : public testing::TestWithParam<Case> {};

// Tensor by tensor, root mean square over its elements, all blocks and several seeds: a maximum
// over the few elements of a bias is a matter of luck, and so is a block's θ, of which one element
// of six may lose all digits that are lost, here or with the BLAS of another CPU.
TEST_P(Fused, ErrorIsWithinFourTimesTheReferences) {
  const Case& c = GetParam();
  EngineOptions reference;
  reference.kernels = Kernels::reference;
  torch::set_num_threads(1);  // what the reference rounds depends on it
  std::map<std::string, Errors> theirs;
  std::map<std::pair<int, int>, std::map<std::string, Errors>> ours;  // by memory and threads
  for (const uint64_t seed : {3, 4, 5, 6, 7, 8, 9, 10}) {
    const Results exact = run(c, torch::kFloat64, reference, seed);
    const Results single = run(c, torch::kFloat32, reference, seed);
    for (const auto& [name, expected] : exact) {
      theirs[of_all_blocks(name)].add(single.at(name), expected);
    }
    for (const auto memory : {MemoryMode::normal, MemoryMode::low}) {
      for (const int threads : {1, 2, 3, 4}) {
        EngineOptions engine;
        engine.memory = memory;
        engine.threads = threads;
        const Results fused = run(c, torch::kFloat32, engine, seed);
        ASSERT_EQ(fused.size(), exact.size());
        auto& errors = ours[{static_cast<int>(memory), threads}];
        for (const auto& [name, expected] : exact) {
          errors[of_all_blocks(name)].add(fused.at(name), expected);
        }
      }
    }
  }
  for (const auto& [mode, errors] : ours) {
    for (const auto& [name, error] : errors) {
      // One rounding of each value is granted where the reference happens to be exact; of a mean,
      // which may be near zero, one rounding of the numbers it is the mean of.
      std::string scale = name;
      if (const size_t at = name.find("running_mean"); at != std::string::npos) {
        scale.replace(at, std::string::npos, "running_var");
      }
      const double granted =
          std::pow(0x1p-24, 2) * (scale == name ? error.values : errors.at(scale).sum);
      EXPECT_LE(std::sqrt(error.square), 4 * std::sqrt(std::max(theirs[name].square, granted)))
          << name << " memory " << mode.first << " threads " << mode.second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Fused, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(FusedEngine, SameBitsForAnyThreadCount) {
  Case c;
  c.model = base();
  c.model.bidirectional = true;
  c.model.dropout = 0.1;
  c.lengths = {90, 1, 300, 17, 64, 128};
  EngineOptions engine;
  engine.threads = 1;
  const Results one = run(c, torch::kFloat32, engine, 3);
  for (const int threads : {2, 3, 4}) {
    engine.threads = threads;
    for (const auto& [name, value] : run(c, torch::kFloat32, engine, 3)) {
      EXPECT_TRUE(value.equal(one.at(name))) << name << " threads " << threads;
    }
  }
}

TEST(FusedEngine, GraphsThatLiveTogetherDoNotShareMemory) {
  Case c;
  c.model = base();
  SequenceModel model(c.model, c.shape, 3);
  const Packed a(torch::randn({20, 3}), {0, 20}), b(torch::randn({30, 3}), {0, 10, 30});
  auto gradient = [&](const std::vector<Tensor>& losses) {
    model->zero_grad();
    Tensor sum = losses[0];
    for (size_t i = 1; i < losses.size(); ++i) sum = sum + losses[i];
    sum.backward();
    return model->blocks[0]->layer->named_parameters()["B"].grad().clone();
  };
  const Tensor together = gradient({model->forward(a).y.sum(), model->forward(b).y.square().sum()});
  const Tensor first = gradient({model->forward(a).y.sum()});
  const Tensor second = gradient({model->forward(b).y.square().sum()});
  EXPECT_LE(relative_error(together, first + second), 1e-5);
}

TEST(FusedEngine, GradientsAccumulateAndAreNotOverwritten) {
  Case c;
  c.model = base();
  SequenceModel model(c.model, c.shape, 3);
  const Packed a(torch::randn({20, 3}), {0, 20}), b(torch::randn({30, 3}), {0, 10, 30});
  const Tensor B = model->blocks[0]->layer->named_parameters()["B"];
  model->forward(a).y.sum().backward();
  const Tensor first = B.grad().clone();
  model->forward(b).y.sum().backward();
  const Tensor both = B.grad().clone();
  B.mutable_grad().zero_();
  model->forward(b).y.sum().backward();
  EXPECT_LE(relative_error(both, first + B.grad()), 1e-5);
}

TEST(FusedEngine, SecondBackwardIsRefused) {
  Case c;
  c.model = base();
  SequenceModel model(c.model, c.shape, 3);
  const Tensor loss = model->forward({torch::randn({20, 3}), {0, 20}}).y.sum();
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), std::exception);
}

// Up to a million steps with the slowest decay of the paper: the error stays that of the reference,
// and small, because nothing sums angles.
TEST(FusedEngine, LongSequencesKeepTheirDigits) {
  for (const int64_t length : {4096, 65536, 1 << 20}) {
    ModelOptions m;
    m.width = 4;
    m.state = 8;
    m.heads = 2;
    m.depth = 1;
    m.norm = NormKind::layer;
    m.pooling = Pooling::last;
    m.init.theta_max = 3;
    const DataShape shape{InputKind::channels, 1, TargetKind::values, 2};
    torch::manual_seed(1);
    const Tensor u = torch::randn({length, 1});
    auto final_state = [&](torch::ScalarType type, Kernels kernels) {
      SequenceModel model(m, shape, 3);
      model->to(type);
      torch::NoGradGuard no_grad;
      model->blocks[0]->layer->named_parameters()["gamma_log"].fill_(std::log(-std::log(0.9999)));
      model->engine.kernels = kernels;
      return model->forward({u.to(type), {0, length}}).final[0].forward;
    };
    const Tensor exact = final_state(torch::kFloat64, Kernels::reference);
    const double reference =
        relative_error(final_state(torch::kFloat32, Kernels::reference), exact);
    const double fused = relative_error(final_state(torch::kFloat32, Kernels::fused), exact);
    fmt::print("length {}: error of the final state {:.1e} fused, {:.1e} reference\n", length,
               fused, reference);
    EXPECT_LE(fused, 4 * std::max(reference, 5e-7));
    EXPECT_LE(fused, 2e-3);
  }
}

TEST(FusedMap, EqualsTheReferenceMap) {
  for (const int64_t dh : {2, 3, 4, 7, 8, 16, 33}) {
    for (const auto normalisation :
         {Normalisation::xi, Normalisation::alpha, Normalisation::none}) {
      RotRNNOptions o;
      o.width = 6;
      o.heads = 3;
      o.state = 3 * dh;
      o.bidirectional = true;
      o.normalisation = normalisation;
      o.stationary_start = normalisation == Normalisation::xi;
      o.c = 1.7;
      RotRNN layer(o, 4);
      auto all = [](const System& s) {
        std::vector<Tensor> t{s.lambda_re, s.lambda_im, s.W, s.V, s.V_reverse};
        if (s.start_re.defined()) t.insert(t.end(), {s.start_re, s.start_im});
        return t;
      };
      auto gradients = [&](const std::vector<Tensor>& system) {
        layer->zero_grad();
        torch::manual_seed(3);
        Tensor sum = torch::zeros({}, torch::kFloat64);
        for (const Tensor& t : system) {
          sum = sum + (t.to(torch::kFloat64) * torch::randn(t.sizes(), torch::kFloat64)).sum();
        }
        sum.backward();
        std::map<std::string, Tensor> out;
        for (const auto& p : layer->named_parameters()) {
          if (p.value().grad().defined()) out[p.key()] = p.value().grad().clone();
        }
        return out;
      };
      const auto expected = all(layer->system()),
                 actual = all(layer->fused_systems({layer.get()}, 2).front());
      ASSERT_EQ(expected.size(), actual.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LE(relative_error(actual[i], expected[i]), 2e-7) << i << " dh " << dh;
      }
      const auto expected_gradients = gradients(expected), actual_gradients = gradients(actual);
      for (const auto& [name, value] : expected_gradients) {
        if (name == "D") continue;
        EXPECT_LE(relative_error(actual_gradients.at(name), value, 1e-2), 1e-6)
            << name << " dh " << dh;
      }
    }
  }
}

}  // namespace
}  // namespace rotrnn
