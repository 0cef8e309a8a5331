// What a network gives for packed sequences: each as if it were alone, by its pooling and head,
// from the states of the sequence before; and which input it refuses.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/layers/rotrnn/oracle.h"
#include "tests/network/passes.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::message_of;
using testing::Doubles;
using testing::PassInput;
using testing::relative_error;
using testing::Results;

using Integers = std::vector<int64_t>;

constexpr const char* kLayers[] = {"rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"};

ModelOptions small(Norm norm = Norm::layer, const std::string& layer = "rotrnn") {
  ModelOptions m;
  m.layer = layer;
  m.width = 6;
  m.state = 10;
  m.rotrnn.heads = 2;
  m.depth = 2;
  m.norm = norm;
  m.s5.blocks = 1;
  m.s4.max_length = 70;
  m.bidirectional = true;
  return m;
}

const DataShape kTokens{InputKind::tokens, 11, TargetKind::classes, 4};

Integers random_tokens(size_t count, uint64_t seed = 5) {
  Random random(seed, RandomSite::trial);
  Integers out(count);
  for (int64_t& token : out) token = random.below(11);
  return out;
}

const Integers kOffsets{0, 5, 6, 76};

// Rows of y with weights, so that there is something to differentiate.
PassInput pass(const Integers& offsets, const int64_t* tokens, Mode mode, const Doubles& dy) {
  PassInput in;
  in.network.batch = {offsets, {tokens, static_cast<size_t>(offsets.back())}, {}};
  in.network.mode = mode;
  in.dy = [dy](const auto&) { return dy; };
  return in;
}

using Run = Results (*)(Network&, const PassInput&);

Results run_by_fused(Network& network, const PassInput& in) {
  return testing::run_fused(network, in);
}

// Outputs and gradients of a batch are those of its sequences alone.
void expect_packed_equals_alone(Network& network, Mode mode, Run run, double output,
                                double gradient) {
  const Integers tokens = random_tokens(76);
  const Doubles g = testing::normal(12, 3);
  const Results together = run(network, pass(kOffsets, tokens.data(), mode, g));
  std::map<std::string, Doubles> sums;
  for (size_t i = 0; i < 3; ++i) {
    const auto from = [&](const Doubles& of) {
      return Doubles(of.begin() + static_cast<ptrdiff_t>(4 * i),
                     of.begin() + static_cast<ptrdiff_t>(4 * i + 4));
    };
    const Integers offsets{0, kOffsets[i + 1] - kOffsets[i]};
    const Results alone = run(network, pass(offsets, tokens.data() + kOffsets[i], mode, from(g)));
    EXPECT_LE(relative_error(from(together.at("y")), alone.at("y")), output);
    for (const auto& [name, values] : alone) {
      if (!name.starts_with("d ")) continue;
      Doubles& sum = sums[name];
      sum.resize(values.size());
      for (size_t k = 0; k < values.size(); ++k) sum[k] += values[k];
    }
  }
  for (const auto& [name, sum] : sums) {
    EXPECT_LE(relative_error(sum, together.at(name), 1e-3), gradient) << name;
  }
}

TEST(SequenceNetwork, PackedEqualsOneByOneWithLayerNorm) {
  for (const std::string layer : kLayers) {
    for (const bool prenorm : {true, false}) {
      SCOPED_TRACE(layer + (prenorm ? "" : ", norm behind"));
      ModelOptions m = small(Norm::layer, layer);
      m.prenorm = prenorm;
      Network network(m, kTokens, 2);
      expect_packed_equals_alone(network, Mode::train, testing::run_twins<double>, 1e-12, 1e-9);
      // Other tiles, other orders of sums: some roundings of float32.
      expect_packed_equals_alone(network, Mode::train, run_by_fused, 1e-5, 1e-4);
    }
  }
}

TEST(SequenceNetwork, PackedEqualsOneByOneWithBatchNormInEvaluation) {
  for (const std::string layer : kLayers) {
    SCOPED_TRACE(layer);
    Network network(small(Norm::batch, layer), kTokens, 2);
    // Running statistics that are not 0 and 1.
    for (float& x : network.weights().buffers()) x += 0.25f;
    expect_packed_equals_alone(network, Mode::evaluate, testing::run_twins<double>, 1e-12, 1e-9);
    expect_packed_equals_alone(network, Mode::evaluate, run_by_fused, 1e-5, 1e-4);
  }
}

// Outputs alone.
Doubles outputs(Network& network, const Integers& offsets, std::span<const int64_t> tokens,
                std::span<const float> values = {}) {
  NetworkInput input;
  input.batch = {offsets, tokens, values};
  Workspace workspace;
  const auto y = network.forward(input, workspace);
  return {y.begin(), y.end()};
}

TEST(SequenceNetwork, PoolingAndHeadsHaveTheirShapes) {
  ModelOptions m = small();
  const Integers tokens = random_tokens(76);
  for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
    for (const auto& [pooling, rows] :
         {std::pair{Pooling::mean, 3}, {Pooling::last, 3}, {Pooling::none, 76}}) {
      m.pooling = pooling;
      Network network(m, kTokens, 2);
      network.engine.kernels = kernels;
      EXPECT_EQ(outputs(network, kOffsets, tokens).size(), static_cast<size_t>(4 * rows));
    }
    // Values in, values out.
    const std::vector<float> values(12, 0.5f);
    for (const auto& [pooling, rows] : {std::pair{Pooling::mean, 2}, {Pooling::none, 6}}) {
      m.pooling = pooling;
      Network network(m, {InputKind::channels, 2, TargetKind::values, 3}, 2);
      network.engine.kernels = kernels;
      EXPECT_EQ(outputs(network, {0, 2, 6}, {}, values).size(), static_cast<size_t>(3 * rows));
    }
  }
}

// The head of pairs by its formula, on documents that go through a network without pairs alone.
TEST(SequenceNetwork, PairsArePredictedFromBothDocuments) {
  for (const Kernels kernels : {Kernels::reference, Kernels::fused}) {
    ModelOptions m;
    m.width = 6;
    m.state = 8;
    m.rotrnn.heads = 2;
    m.depth = 2;
    Network one(m, {InputKind::tokens, 11, TargetKind::classes, 6}, 5);
    Network two(m, {InputKind::tokens, 11, TargetKind::classes, 2, 2}, 5);  // other weights alike
    one.engine.kernels = two.engine.kernels = kernels;
    // A head that shows the pooled channels.
    const auto weight = one.weights().find("head.weight"), bias = one.weights().find("head.bias");
    std::fill(bias.begin(), bias.end(), 0.0f);
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = i % 7 == 0 ? 1.0f : 0.0f;
    const Integers tokens = random_tokens(17), offsets{0, 3, 8, 9, 17};  // two pairs
    const Doubles y = outputs(two, offsets, tokens), x = outputs(one, offsets, tokens);
    ASSERT_EQ(y.size(), 4u);
    const auto dense = [&](const std::string& name, const Doubles& in) {
      const auto w = two.weights().find(name + ".weight"), b = two.weights().find(name + ".bias");
      Doubles out(b.begin(), b.end());
      for (size_t i = 0; i < w.size(); ++i) {
        out[i / in.size()] += static_cast<double>(w[i]) * in[i % in.size()];
      }
      return out;
    };
    for (size_t pair = 0; pair < 2; ++pair) {
      Doubles joined(24);
      for (size_t d = 0; d < 6; ++d) {
        const double a = x[12 * pair + d], b = x[12 * pair + 6 + d];
        joined[d] = a, joined[6 + d] = b, joined[12 + d] = a - b, joined[18 + d] = a * b;
      }
      Doubles hidden = dense("hidden", joined);
      for (double& h : hidden) {
        h = 0.5 * h * (1 + std::tanh(0.7978845608 * (h + 0.044715 * h * h * h)));
      }
      const Doubles seen(y.begin() + static_cast<ptrdiff_t>(2 * pair),
                         y.begin() + static_cast<ptrdiff_t>(2 * pair + 2));
      EXPECT_LE(relative_error(seen, dense("head", hidden), 1e-3), 1e-5);
    }
  }
}

TEST(SequenceNetwork, LastPoolingReadsTheLastTokenAndMeanAveragesTheTrueLength) {
  for (const std::string layer : kLayers) {
    const Integers tokens = random_tokens(76);
    const auto of = [&](Pooling pooling) {
      ModelOptions m = small(Norm::layer, layer);
      m.pooling = pooling;
      Network network(m, kTokens, 2);
      return outputs(network, kOffsets, tokens);
    };
    const Doubles all = of(Pooling::none);  // the head is linear, so it commutes with both
    Doubles last, mean;
    for (size_t i = 0; i < 3; ++i) {
      const auto begin = static_cast<size_t>(kOffsets[i]),
                 end = static_cast<size_t>(kOffsets[i + 1]);
      for (size_t k = 0; k < 4; ++k) {
        double sum = 0;
        for (size_t t = begin; t < end; ++t) sum += all[4 * t + k];
        mean.push_back(sum / static_cast<double>(end - begin));
        last.push_back(all[4 * (end - 1) + k]);
      }
    }
    EXPECT_LE(relative_error(of(Pooling::last), last), 1e-5) << layer;
    EXPECT_LE(relative_error(of(Pooling::mean), mean), 1e-5) << layer;
  }
}

TEST(SequenceNetwork, StatesHandedOverContinueTheSequence) {
  for (const std::string layer : {"rotrnn", "lru", "s5", "s4d"}) {
    ModelOptions m = small(Norm::layer, layer);
    m.bidirectional = false;
    m.pooling = Pooling::none;
    Network network(m, kTokens, 2);
    const Integers tokens = random_tokens(90);
    LayerMaps maps;
    const NetworkLayers layers(m, network.weights());
    maps.forward(m, layers.values, 90, 1, false);
    ReferencePass run;
    const auto part = [&](int64_t begin, int64_t end, std::vector<TwinStates> initial) {
      const Integers offsets{0, end - begin};
      const std::span some(tokens.data() + begin, tokens.data() + end);
      return run.forward(m, kTokens, {}, network.weights(), maps,
                         {{offsets, some, {}}, Mode::evaluate, {}, std::move(initial)});
    };
    const Doubles whole = part(0, 90, {});
    Doubles y = part(0, 33, {});
    const Doubles rest = part(33, 90, run.final());
    y.insert(y.end(), rest.begin(), rest.end());
    EXPECT_LE(relative_error(y, whole), 1e-12) << layer;
    // The same by the fused kernels, to float32.
    const size_t size = network.state_size();
    std::vector<std::vector<float>> states(4, std::vector<float>(size));
    NetworkInput input;
    Workspace workspace;
    const Integers first{0, 33}, second{0, 57};
    input.batch = {first, std::span(tokens).first(33), {}};
    input.final = {{states[0].data()}, {states[1].data()}};
    auto part_y = network.forward(input, workspace);
    Doubles fused(part_y.begin(), part_y.end());
    input.batch = {second, std::span(tokens).last(57), {}};
    input.initial = {{states[0].data()}, {states[1].data()}};
    input.final = {};
    part_y = network.forward(input, workspace);
    fused.insert(fused.end(), part_y.begin(), part_y.end());
    EXPECT_LE(relative_error(fused, whole), 1e-5) << layer;
  }
}

TEST(SequenceNetwork, EmptyBatchGivesNothing) {
  for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
    for (const std::string layer : kLayers) {
      Network network(small(Norm::batch, layer), kTokens, 2);
      network.engine.kernels = kernels;
      const std::vector<float> before = network.weights().buffers();
      const Integers none{0};
      NetworkInput input;
      input.batch = {none, {}, {}};
      input.mode = Mode::train;
      input.backward = true;
      Workspace workspace;
      EXPECT_TRUE(network.forward(input, workspace).empty());
      FlatArray gradients(network.layout());
      std::fill(gradients.all().begin(), gradients.all().end(), 1.0f);
      network.backward({}, workspace, gradients);
      for (const float g : gradients.all()) ASSERT_EQ(g, 0.0f);
      EXPECT_EQ(network.weights().buffers(), before) << "no statistics move";
    }
  }
}

TEST(SequenceNetwork, WrongInputIsRefused) {
  const auto refused = [](Network& network, const NetworkInput& input, const char* expected) {
    Workspace workspace;
    const std::string message =
        message_of<std::invalid_argument>([&] { network.forward(input, workspace); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  const auto batch = [](const Integers& offsets, const Integers& tokens,
                        const std::vector<float>& values = {}) {
    NetworkInput input;
    input.batch = {offsets, tokens, values};
    return input;
  };
  Network network(small(), kTokens, 2);
  const Integers three{0, 3}, two{0, 2}, gap{0, 3, 3}, late{1, 3}, back{0, 3, 2};
  const std::vector<float> values(6);
  refused(network, batch(three, {}, values), "0 token numbers, the offsets say 3");
  const Integers below{3, -1}, above{3, 11}, fine{3, 1, 2};
  refused(network, batch(two, below), "token number -1 is outside the vocabulary of 11");
  refused(network, batch(two, above), "token number 11");
  refused(network, batch(two, fine), "3 token numbers, the offsets say 2");
  refused(network, batch(gap, fine), "sequence 1 has 0 tokens");
  refused(network, batch(back, fine), "sequence 1 has -1 tokens");
  refused(network, batch(late, fine), "offsets must begin with 0");
  Network channels(small(), {InputKind::channels, 3, TargetKind::classes, 4}, 2);
  refused(channels, batch(three, {}, values), "6 values, the offsets say 3 rows of 3 channels");
  Network pairs(small(), {InputKind::tokens, 11, TargetKind::classes, 4, 2}, 2);
  refused(pairs, batch(three, fine), "cannot be pairs");
  // States: of all blocks or none, in directions that there are, of layers that have some.
  std::vector<float> state(100);
  NetworkInput input = batch(three, fine);
  input.initial = {{state.data(), nullptr}};
  refused(network, input, "states of 1 blocks for a network of 2");
  input.initial = {};
  input.final = {{state.data(), state.data()}, {}};
  ModelOptions forward = small();
  forward.bidirectional = false;
  Network one_way(forward, kTokens, 2);
  refused(one_way, input, "has no reverse state");
  Network convolution(small(Norm::layer, "s4"), kTokens, 2);
  refused(convolution, input, "s4 runs as a convolution");

  ModelOptions m = small();
  m.layer = "gru";
  EXPECT_THROW(Network(m, kTokens, 2), std::invalid_argument);
  m = small();
  m.pooling = Pooling::none;
  EXPECT_THROW(Network(m, {InputKind::tokens, 11, TargetKind::classes, 4, 2}, 2),
               std::invalid_argument);
  m.depth = 0;
  EXPECT_THROW(Network(m, kTokens, 2), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn
