// Whole networks on the fused kernels against their twins in double: the error may be at most four
// times that of plain float32 code, which the twins in float are.

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "tests/network/passes.h"

namespace rotrnn {
namespace {

using testing::fused;
using testing::Results;
using testing::twins;
using Case = testing::PassCase;

template <class Change>
Case make_case(const std::string& name, const Change& change) {
  Case c;
  c.model = testing::odd_sizes();
  change(c);
  c.name = name;
  return c;
}

constexpr Activation kActivations[] = {Activation::half_glu1, Activation::full_glu,
                                       Activation::half_glu2, Activation::gelu,
                                       Activation::exact_glu};

std::vector<Case> activation_cases() {
  std::vector<Case> out;
  for (const auto activation : kActivations) {
    for (const auto norm : {Norm::batch, Norm::layer}) {
      for (const bool prenorm : {true, false}) {
        for (const bool bidirectional : {true, false}) {
          out.push_back(
              make_case(fmt::format("activation{}_norm{}_pre{}_bi{}", static_cast<int>(activation),
                                    static_cast<int>(norm), prenorm, bidirectional),
                        [&](Case& c) {
                          c.model.activation = activation;
                          c.model.norm = norm;
                          c.model.prenorm = prenorm;
                          c.model.bidirectional = bidirectional;
                        }));
        }
      }
    }
  }
  return out;
}

std::vector<Case> rotrnn_cases() {
  std::vector<Case> out;
  const auto add = [&](const char* name, auto change) { out.push_back(make_case(name, change)); };
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
  add("pairs", [](Case& c) { c.shape.towers = 2; });
  add("stationary", [](Case& c) { c.model.rotrnn.stationary_start = true; });
  add("stationary_bidirectional", [](Case& c) {
    c.model.rotrnn.stationary_start = true;
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
  add("alpha", [](Case& c) { c.model.rotrnn.normalisation = Normalisation::alpha; });
  add("none_log_theta", [](Case& c) {
    c.model.rotrnn.normalisation = Normalisation::none;
    c.model.rotrnn.init.theta_form = ThetaForm::log;
  });
  add("fixed_rotation", [](Case& c) { c.model.rotrnn.learn_rotation = false; });
  add("one_token", [](Case& c) {
    c.lengths = {1, 1};
    c.model.norm = Norm::layer;
  });
  add("wide", [](Case& c) {
    c.model.width = 64;
    c.model.state = 96;
    c.model.rotrnn.heads = 8;
    c.lengths = {300, 7, 450};
  });
  add("one_head", [](Case& c) {
    c.model.rotrnn.heads = 1;
    c.model.state = 11;
  });
  return out;
}

std::vector<Case> other_layers() {
  std::vector<Case> out;
  for (const std::string layer : {"lru", "s5", "s4d", "s4", "liquid_s4"}) {
    const bool diagonal = layer == "lru" || layer == "s5";
    for (const bool bidirectional : {false, true}) {
      for (const bool other : {false, true}) {
        const std::string name = fmt::format("{}_bi{}_other{}", layer, bidirectional, other);
        out.push_back(make_case(name, [&](Case& c) {
          c.model.layer = layer;
          c.model.state = 14;
          c.model.bidirectional = bidirectional;
          c.evaluating = other && bidirectional;
          if (diagonal) {
            c.states = true;
            c.model.s5.blocks = 1;
            if (other) {
              c.model.lru.gamma = LruGamma::fixed;
              c.model.s5.discretisation = Discretisation::bilinear;
              c.model.s5.clip = true;
            }
            return;
          }
          c.model.activation = other ? Activation::half_glu2 : Activation::exact_glu;
          c.model.prenorm = !other;
          c.model.dropout = 0.2;
          c.model.liquid_s4.degree = other ? 3 : 2;
          // Where there are many of one length, S4D is run as a convolution.
          if (other != bidirectional) c.lengths = {40, 40, 1, 40, 39, 40, 40, 40};
        }));
      }
    }
  }
  const auto add = [&](const char* name, const char* layer, auto change) {
    out.push_back(make_case(name, [&](Case& c) {
      c.model.layer = layer;
      c.model.state = 14;
      change(c);
    }));
  };
  add("s4d_states", "s4d", [](Case& c) { c.states = true; });
  add("s4d_tied_inv", "s4d", [](Case& c) {
    c.model.s4d.tied = true;
    c.model.s4d.init = S4DInit::inv;
    c.model.s4d.discretisation = Discretisation::bilinear;
  });
  add("s4_grows", "s4", [](Case& c) { c.model.s4.max_length = 40; });
  add("liquid_s4_kb", "liquid_s4", [](Case& c) {
    c.model.liquid_s4.form = LiquidForm::kb;
    c.model.liquid_s4.degree = 4;
  });
  add("liquid_s4_reference", "liquid_s4", [](Case& c) {
    c.model.liquid_s4.mode = LiquidMode::reference;
    c.lengths = {9, 30, 6, 17};
  });
  return out;
}

// Lengths below a token, of one, and that no number of tokens fills.
std::vector<Case> frontend_cases() {
  std::vector<Case> out;
  const auto add = [&](const char* name, FrontendKind kind, auto change) {
    out.push_back(make_case(name, [&](Case& c) {
      FrontendOptions& f = c.model.frontend;
      f.kind = kind;
      f.hop = 8, f.bands = 6, f.learn = true;
      f.size = 5, f.stride = 3;
      c.lengths = {60, 5, 8, 131, 90};
      change(c);
    }));
  };
  add("rotations", FrontendKind::rotations, [](Case&) {});
  add("rotations_fixed", FrontendKind::rotations, [](Case& c) { c.model.frontend.learn = false; });
  add("rotations_pairs", FrontendKind::rotations, [](Case& c) {
    c.shape.towers = 2;
    c.shape.rate = 100;
    c.model.pooling = Pooling::last;
    c.lengths.push_back(70);
  });
  add("rotations_one_channel", FrontendKind::rotations, [](Case& c) {
    c.shape.inputs = 1;
    c.model.frontend.bands = 20;
    c.model.dropout = 0.2;
  });
  add("rotations_evaluating", FrontendKind::rotations, [](Case& c) { c.evaluating = true; });
  add("rotations_states", FrontendKind::rotations, [](Case& c) { c.states = true; });
  add("patch", FrontendKind::patch, [](Case&) {});
  add("patch_apart", FrontendKind::patch, [](Case& c) {
    c.model.frontend.stride = 7;
    c.model.bidirectional = true;
  });
  add("patch_s4", FrontendKind::patch, [](Case& c) { c.model.layer = "s4", c.model.state = 14; });
  add("rotations_s4d", FrontendKind::rotations,
      [](Case& c) { c.model.layer = "s4d", c.model.state = 14; });
  return out;
}

// Whatever sizes there are: widths and heads that fit no vector, ragged batches, any setting.
std::vector<Case> random_cases() {
  constexpr const char* kLayers[] = {"rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"};
  std::vector<Case> out;
  for (uint64_t i = 0; i < 48; ++i) {
    Random random(i, RandomSite::trial);
    const auto below = [&](uint32_t end) { return static_cast<int64_t>(random.below(end)); };
    out.push_back(make_case(fmt::format("random{}_{}", i, kLayers[i % 6]), [&](Case& c) {
      ModelOptions& m = c.model;
      m.layer = kLayers[i % 6];
      m.width = 1 + below(40);
      m.rotrnn.heads = 1 + below(4);
      m.state = m.layer == "rotrnn" ? m.rotrnn.heads * (2 + below(9)) : 2 * (1 + below(17));
      m.s5.blocks = 1;
      m.depth = 1 + below(3);
      m.bidirectional = below(2) == 1;
      m.activation = kActivations[below(5)];
      m.norm = below(2) == 1 ? Norm::layer : Norm::batch;
      m.prenorm = below(3) > 0;
      m.dropout = below(2) == 1 ? 0.25 : 0;
      m.pooling = std::array{Pooling::mean, Pooling::last, Pooling::none}[below(3)];
      m.rotrnn.stationary_start = below(2) == 1;
      c.shape.outputs = 1 + below(9);
      c.shape.towers = m.pooling != Pooling::none && below(4) == 0 ? 2 : 1;
      if (below(2) == 1) c.shape.input = InputKind::tokens;
      c.shape.inputs = 1 + below(c.shape.input == InputKind::tokens ? 20 : 5);
      c.lengths.clear();
      const int64_t sequences = c.shape.towers * (1 + below(6));
      while (std::ssize(c.lengths) < sequences) c.lengths.push_back(1 + below(90));
      // A variance of hardly any numbers is rounding, or its inverse.
      if (m.norm == Norm::batch) c.lengths.back() += 20;
      if (m.norm == Norm::layer) m.width += 4;
      c.evaluating = below(4) == 0;
    }));
  }
  return out;
}

// Squares of a tensor's errors and of its values, and the values, summed over elements and seeds.
struct Errors {
  double square = 0, values = 0, sum = 0;

  void add(const std::vector<double>& actual, const std::vector<double>& exact) {
    ASSERT_EQ(actual.size(), exact.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      square += (actual[i] - exact[i]) * (actual[i] - exact[i]);
      values += exact[i] * exact[i];
      sum += exact[i];
    }
  }
};

// One name for a parameter of all blocks.
std::string of_all_blocks(const std::string& name) {
  static const std::regex number("blocks\\.[0-9]+");
  return std::regex_replace(name, number, "blocks");
}

// One rounding of each value is granted where the plain code happens to be exact. Of a mean, which
// may be near zero, it is one of the numbers it is the mean of. Of layers that are run as a
// convolution it is two of the layer's largest gradient, there and back: an FFT has the error of
// its largest value in all others, where the plain sums have hardly any in the small ones.
double granted(const Case& c, const std::string& name, const std::map<std::string, Errors>& all) {
  double square = all.at(name).values;
  if (const size_t at = name.find("running_mean"); at != std::string::npos) {
    square = all.at(std::string(name).replace(at, std::string::npos, "running_var")).sum;
  }
  const std::string layer = "d blocks.layer.";
  if (c.model.layer.ends_with("s4") && name.starts_with(layer)) {
    for (const auto& [other, error] : all) {
      if (other.starts_with(layer)) square = std::max(square, 4 * error.values);
    }
  }
  return std::pow(0x1p-24, 2) * square;
}

class Fused : public ::testing::TestWithParam<Case> {};

// Tensor by tensor, root mean square over its elements, all blocks and several seeds: a maximum
// over the few elements of a bias is a matter of luck, and so is a block's θ, of which one element
// of six may lose all digits that are lost, here or on another CPU.
TEST_P(Fused, ErrorIsWithinFourTimesThatOfPlainFloats) {
  const Case& c = GetParam();
  std::map<std::string, Errors> theirs;
  std::map<std::pair<int, int>, std::map<std::string, Errors>> ours;  // by memory and threads
  for (const uint64_t seed : {3, 4, 5, 6, 7, 8, 9, 10}) {
    const Results exact = twins<double>(c, seed), single = twins<float>(c, seed);
    for (const auto& [name, expected] : exact) {
      theirs[of_all_blocks(name)].add(single.at(name), expected);
    }
    for (const auto memory : {MemoryMode::normal, MemoryMode::low}) {
      for (const int threads : {1, 2, 3, 4}) {
        const Results results = fused(c, seed, memory, threads);
        ASSERT_EQ(results.size(), exact.size());
        auto& errors = ours[{static_cast<int>(memory), threads}];
        for (const auto& [name, expected] : exact) {
          errors[of_all_blocks(name)].add(results.at(name), expected);
        }
      }
    }
  }
  for (const auto& [mode, errors] : ours) {
    for (const auto& [name, error] : errors) {
      EXPECT_LE(std::sqrt(error.square),
                4 * std::sqrt(std::max(theirs[name].square, granted(c, name, errors))))
          << name << " memory " << mode.first << " threads " << mode.second;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Activations, Fused, ::testing::ValuesIn(activation_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Rotrnn, Fused, ::testing::ValuesIn(rotrnn_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Layers, Fused, ::testing::ValuesIn(other_layers()), name_of);
INSTANTIATE_TEST_SUITE_P(Frontends, Fused, ::testing::ValuesIn(frontend_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Random, Fused, ::testing::ValuesIn(random_cases()), name_of);

}  // namespace
}  // namespace rotrnn
