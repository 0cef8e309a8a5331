// Parameters of networks: how they are drawn and grouped; dropout's masks; norms of hidden states.

#include "rotrnn/network/weights.h"

#include <gtest/gtest.h>

#include <set>

#include "rotrnn/network/dropout.h"
#include "rotrnn/network/tensors.h"
#include "tests/layers/rotrnn/oracle.h"
#include "tests/network/passes.h"

namespace rotrnn {
namespace {

using testing::Doubles;
using testing::relative_error;

ModelOptions small(Norm norm = Norm::layer) {
  ModelOptions m;
  m.width = 6;
  m.state = 10;
  m.rotrnn.heads = 2;
  m.depth = 2;
  m.norm = norm;
  m.bidirectional = true;
  return m;
}

const DataShape kTokens{InputKind::tokens, 11, TargetKind::classes, 4};

TEST(NetworkWeights, AreAPureFunctionOfTheSeed) {
  Network a(small(), kTokens, 2), b(small(), kTokens, 2), c(small(), kTokens, 3);
  const auto values = [](Network& n, const std::string& name) {
    const auto found = n.weights().find(name);
    EXPECT_FALSE(found.empty()) << name;
    return std::vector<float>(found.begin(), found.end());
  };
  for (const auto& p : a.layout().parameters) {
    EXPECT_EQ(values(a, p.name), values(b, p.name)) << p.name;
    if (p.name.find(".norm.") == std::string::npos) {
      EXPECT_NE(values(a, p.name), values(c, p.name)) << p.name;
    }
  }
  EXPECT_NE(values(a, "blocks.0.layer.B"), values(a, "blocks.1.layer.B"));
  EXPECT_NE(values(a, "blocks.0.gate.weight"), values(a, "blocks.1.gate.weight"));
}

TEST(NetworkWeights, AreInGroupsByTheirNames) {
  ModelOptions m = small();
  m.activation = Activation::full_glu;
  std::map<ParameterGroup, std::set<std::string>> names;
  const WeightLayout layout(network_tensors(m, kTokens));
  for (const auto& p : layout.parameters) {
    if (p.name.find("blocks.1") == std::string::npos) names[p.group].insert(p.name);
  }
  const std::string b = "blocks.0.";
  EXPECT_EQ(names[ParameterGroup::recurrent],
            (std::set<std::string>{b + "layer.theta", b + "layer.gamma_log", b + "layer.B"}));
  EXPECT_EQ(names[ParameterGroup::no_decay],
            (std::set<std::string>{b + "norm.weight", b + "norm.bias", b + "gate.bias",
                                   b + "value.bias", "head.bias"}));
  EXPECT_EQ(names[ParameterGroup::decay],
            (std::set<std::string>{"encoder.weight", "head.weight", b + "layer.M", b + "layer.C",
                                   b + "layer.C_reverse", b + "layer.D", b + "gate.weight",
                                   b + "value.weight"}));
  m.rotrnn.init.theta_form = ThetaForm::log;
  const WeightLayout other(network_tensors(m, kTokens));
  EXPECT_EQ(other.find("blocks.0.layer.theta_log")->group, ParameterGroup::recurrent);
}

// Every parameter has a place of its own, and those of a group are neighbours.
TEST(NetworkWeights, FillTheFlatArray) {
  ModelOptions m = small(Norm::batch);
  m.layer = "s5";
  m.s5.blocks = 1;
  m.s5.groups = S5Groups::b_and_c_decay;
  const WeightLayout layout(network_tensors(m, kTokens));
  std::vector<int> seen(layout.size);
  for (const auto& p : layout.parameters) {
    EXPECT_EQ(p.count, count_of(p.shape)) << p.name;
    EXPECT_EQ(layout.find(p.name), &p);
    for (size_t i = 0; i < p.count; ++i) ++seen.at(p.offset + i);
    const auto in = [&](const WeightLayout::Range& r) {
      return r.group == p.group && r.offset <= p.offset && p.offset + p.count <= r.offset + r.count;
    };
    EXPECT_EQ(std::count_if(layout.ranges.begin(), layout.ranges.end(), in), 1) << p.name;
  }
  EXPECT_EQ(seen, std::vector<int>(layout.size, 1));
  EXPECT_EQ(layout.ranges.size(), 4u);
  EXPECT_EQ(layout.find("blocks.2.norm.weight"), nullptr);
  EXPECT_EQ(layout.floats, 2u * 2 * 6) << "running statistics";
}

TEST(Dropout, MaskIsSharedOverTimeAndAFunctionOfTheSequence) {
  const auto mask = [](int64_t step, const std::vector<int64_t>& sequences, size_t block,
                       size_t site) {
    Doubles out(sequences.size() * 2000);
    draw_mask({9, step, sequences}, block, site, 2000, 0.3, out.data());
    return out;
  };
  const Doubles all = mask(4, {3, 8, 5}, 1, 0);
  // Kept channels are scaled up; 6,000 draws at 0.7, standard deviation 0.006.
  const auto kept = std::count_if(all.begin(), all.end(), [](double x) { return x > 0; });
  EXPECT_NEAR(static_cast<double>(kept) / 6000, 0.7, 0.03);
  for (const double x : all) EXPECT_TRUE(x == 0 || std::abs(x - 1 / 0.7) < 1e-12);
  // A sequence has the same mask in any batch, and another at another step, block or site.
  const Doubles alone = mask(4, {8}, 1, 0);
  EXPECT_EQ(alone, Doubles(all.begin() + 2000, all.begin() + 4000));
  EXPECT_NE(mask(5, {8}, 1, 0), alone);
  EXPECT_NE(mask(4, {8}, 2, 0), alone);
  EXPECT_NE(mask(4, {8}, 1, 1), alone);
}

TEST(Dropout, OfANetworkFollowsItsKey) {
  ModelOptions m = small();
  m.dropout = 0.4;
  Network network(m, kTokens, 2);
  const std::vector<int64_t> offsets{0, 5, 6, 76}, sequences{0, 1, 2}, two{0, 1};
  std::vector<int64_t> tokens(76);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i * i % 11);
  for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
    network.engine.kernels = kernels;
    const auto run = [&](Mode mode, const DropoutKey& key) {
      Workspace workspace;
      NetworkInput input;
      input.batch = {offsets, tokens, {}};
      input.mode = mode;
      input.dropout = key;
      const auto y = network.forward(input, workspace);
      return std::vector<float>(y.begin(), y.end());
    };
    const auto once = run(Mode::train, {1, 1, sequences});
    EXPECT_EQ(run(Mode::train, {1, 1, sequences}), once);
    EXPECT_NE(run(Mode::train, {1, 2, sequences}), once);
    EXPECT_NE(run(Mode::train, {2, 1, sequences}), once);
    EXPECT_THROW(run(Mode::train, {1, 1, two}), std::invalid_argument);
    const auto whole = run(Mode::evaluate, {});
    EXPECT_NE(whole, once);
    EXPECT_EQ(run(Mode::evaluate, {1, 2, sequences}), whole);
    EXPECT_EQ(run(Mode::observe, {1, 2, sequences}), run(Mode::observe, {}));
  }
}

// The first block by the paper's equations, on the normalised input: dense A = P Θ Pᵀ.
TEST(StateNorms, AreThoseOfTheHiddenStateAndLeaveNoTrace) {
  ModelOptions m = small(Norm::batch);
  m.dropout = 0.4;
  m.state = 12;  // heads of three pairs
  Network network(m, kTokens, 2);
  for (const char* name : {"blocks.0.norm.weight", "blocks.0.norm.bias"}) {
    for (float& x : network.weights().find(name)) x += 0.1f;
  }
  const std::vector<int64_t> offsets{0, 5, 6, 76};
  std::vector<int64_t> tokens(76);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i * i % 11);
  const std::vector<float> before = network.weights().buffers();
  Workspace workspace;
  const auto norms = network.state_norms({offsets, tokens, {}}, workspace);
  EXPECT_EQ(network.weights().buffers(), before);

  ASSERT_EQ(norms.blocks.size(), 2u);
  ASSERT_EQ(norms.groups, 2u);
  testing::DoubleBatch u{offsets, Doubles(76 * 6), {}};
  const auto of = [&](const std::string& name) { return network.weights().find(name); };
  for (size_t d = 0; d < 6; ++d) {
    Doubles column;
    for (const int64_t token : tokens) {
      column.push_back(of("encoder.weight")[static_cast<size_t>(token) * 6 + d]);
    }
    const double mean = testing::mean(column);
    double variance = 0;
    for (const double x : column) variance += (x - mean) * (x - mean) / 76;
    for (size_t t = 0; t < 76; ++t) {
      const double hat = (column[t] - mean) / std::sqrt(variance + 1e-5);
      u.u[t * 6 + d] = hat * static_cast<double>(of("blocks.0.norm.weight")[d]) +
                       static_cast<double>(of("blocks.0.norm.bias")[d]);
    }
  }
  testing::DoubleLayer layer(m, 2);
  for (const auto& [name, values] : layer.values().tensors) {
    const auto from = of("blocks.0.layer." + name);
    std::copy(from.begin(), from.end(), values.begin());
  }
  const auto x = oracle::run<double>(layer, u).x;  // [76, 12], a head after the other
  Doubles expected(152);
  for (size_t i = 0; i < x.size(); ++i) expected[i / 6] += x[i] * x[i];
  for (double& norm : expected) norm = std::sqrt(norm);
  EXPECT_LE(relative_error(norms.blocks[0], expected), 2e-6);  // float32
  EXPECT_EQ(norms.blocks[1].size(), expected.size());
  EXPECT_NE(norms.blocks[1], norms.blocks[0]);
}

TEST(StateNorms, NeedALayerWithStates) {
  for (const std::string layer : {"s4", "liquid_s4"}) {
    ModelOptions m = small();
    m.layer = layer;
    m.s4.max_length = 8;
    Network network(m, kTokens, 2);
    Workspace workspace;
    const std::vector<int64_t> offsets{0, 3}, tokens{1, 2, 3};
    EXPECT_THROW(network.state_norms({offsets, tokens, {}}, workspace), std::invalid_argument);
  }
}

}  // namespace
}  // namespace rotrnn
