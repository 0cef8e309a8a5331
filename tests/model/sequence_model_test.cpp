#include "rotrnn/model/sequence_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "rotrnn/layers/rotrnn.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using test::from_json;
using test::relative_error;
using torch::Tensor;

const nlohmann::json& golden_networks() {
  static const auto json =
      nlohmann::json::parse(std::ifstream(ROTRNN_GOLDEN "/rotrnn.json")).at("networks");
  return json;
}

// The script calls the two matrices of a gated unit W1 and W2, as the paper's formula does.
std::string script_name(const std::string& name) {
  return std::regex_replace(std::regex_replace(name, std::regex("\\.value\\."), ".W1."),
                            std::regex("\\.gate\\."), ".W2.");
}

SequenceModel golden_model(const nlohmann::json& json) {
  const auto& o = json.at("options");
  ModelOptions m;
  m.width = o.at("D");
  m.state = o.at("N");
  m.heads = o.at("H");
  m.depth = o.at("depth");
  m.norm = o.at("norm") == "batch" ? NormKind::batch : NormKind::layer;
  m.prenorm = o.at("prenorm");
  m.activation = std::map<std::string, Activation>{{"half_glu1", Activation::half_glu1},
                                                   {"full_glu", Activation::full_glu},
                                                   {"half_glu2", Activation::half_glu2},
                                                   {"gelu", Activation::gelu}}
                     .at(o.at("activation"));
  SequenceModel model(
      m, DataShape{InputKind::channels, o.at("channels"), TargetKind::classes, o.at("classes")}, 0);
  model->to(torch::kFloat64);
  torch::NoGradGuard no_grad;
  size_t used = 0;
  for (auto list : {model->named_parameters(), model->named_buffers()}) {
    for (auto& entry : list) {
      entry.value().copy_(from_json(json.at("parameters").at(script_name(entry.key()))));
      ++used;
    }
  }
  EXPECT_EQ(used, json.at("parameters").size());
  model->train(o.at("training").get<bool>());
  return model;
}

TEST(SequenceModel, NetworksGiveTheScriptsLogitsAndGradients) {
  int networks = 0, gradients = 0;
  for (const auto& [name, json] : golden_networks().items()) {
    SequenceModel model = golden_model(json);
    Packed u(from_json(json.at("input").at("u")).requires_grad_(),
             json.at("offsets").get<std::vector<int64_t>>());
    const Tensor y = model->forward(u).y;
    EXPECT_LE(relative_error(y, from_json(json.at("outputs").at("logits"))), 1e-10) << name;
    ++networks;
    for (const auto& buffer : model->named_buffers()) {
      if (!json.at("outputs").contains(buffer.key())) continue;  // only training changes them
      EXPECT_LE(relative_error(buffer.value(), from_json(json.at("outputs").at(buffer.key()))),
                1e-12)
          << name << " " << buffer.key();
      ++gradients;
    }
    if (json.at("gradients").empty()) continue;
    (y * from_json(json.at("input").at("G"))).sum().backward();
    for (const auto& p : model->named_parameters()) {
      const Tensor expected = from_json(json.at("gradients").at(script_name(p.key())));
      EXPECT_LE(relative_error(p.value().grad(), expected, 1e-3), 1e-9) << name << " " << p.key();
      ++gradients;
    }
    EXPECT_LE(relative_error(u.values.grad(), from_json(json.at("gradients").at("u")), 1e-3), 1e-9);
  }
  EXPECT_EQ(networks, 8);
  EXPECT_GT(gradients, 40);
}

int64_t count(const ModelOptions& options, const DataShape& shape) {
  SequenceModel model(options, shape, 0);
  int64_t total = 0;
  for (const auto& p : model->parameters()) total += p.numel();
  return total;
}

TEST(SequenceModel, SpeechCommandsHasThePublishedParameterCount) {
  ModelOptions m;
  m.width = 96;
  m.state = 128;
  m.heads = 32;
  m.depth = 6;
  const DataShape shape{InputKind::channels, 1, TargetKind::classes, 35};
  EXPECT_EQ(count(m, shape), 212'291);
  m.bidirectional = true;
  EXPECT_EQ(count(m, shape), 286'019);
  m.heads = 64;
  EXPECT_EQ(count(m, shape), 284'675);
}

ModelOptions small(NormKind norm = NormKind::layer) {
  ModelOptions m;
  m.width = 6;
  m.state = 10;
  m.heads = 2;
  m.depth = 2;
  m.norm = norm;
  m.bidirectional = true;
  return m;
}

const DataShape kTokens{InputKind::tokens, 11, TargetKind::classes, 4};

Packed token_batch() {
  torch::manual_seed(5);
  return {torch::randint(11, {5 + 1 + 70}, torch::kInt64), std::vector<int64_t>{0, 5, 6, 76}};
}

// Outputs and gradients of a batch are those of its sequences alone.
void expect_packed_equals_alone(SequenceModel model) {
  const Packed batch = token_batch();
  const Tensor g = torch::randn({3, 4}, torch::kFloat64);
  const Tensor together = model->forward(batch).y;
  (together * g).sum().backward();
  std::map<std::string, Tensor> gradients;
  for (const auto& p : model->named_parameters()) gradients[p.key()] = p.value().grad().clone();
  model->zero_grad();
  const auto& offsets = batch.layout->offsets();
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    const Packed alone(batch.values.narrow(0, offsets[i], length), std::vector<int64_t>{0, length});
    const Tensor y = model->forward(alone).y;
    EXPECT_LE(relative_error(together[i].unsqueeze(0), y), 1e-12);
    (y * g[i]).sum().backward();
  }
  for (const auto& p : model->named_parameters()) {
    EXPECT_LE(relative_error(gradients[p.key()], p.value().grad(), 1e-3), 1e-9) << p.key();
  }
}

TEST(SequenceModel, PackedEqualsOneByOneWithLayerNorm) {
  for (const bool prenorm : {true, false}) {
    ModelOptions m = small();
    m.prenorm = prenorm;
    SequenceModel model(m, kTokens, 2);
    model->to(torch::kFloat64);
    expect_packed_equals_alone(model);
  }
}

TEST(SequenceModel, PackedEqualsOneByOneWithBatchNormInEvaluation) {
  SequenceModel model(small(NormKind::batch), kTokens, 2);
  model->to(torch::kFloat64);
  model->forward(token_batch());  // moves the running statistics away from 0 and 1
  model->eval();
  expect_packed_equals_alone(model);
}

TEST(SequenceModel, PoolingAndHeadsHaveTheirShapes) {
  ModelOptions m = small();
  const Packed batch = token_batch();
  for (const auto& [pooling, rows] :
       {std::pair{Pooling::mean, 3}, {Pooling::last, 3}, {Pooling::none, 76}}) {
    m.pooling = pooling;
    SequenceModel model(m, kTokens, 2);
    EXPECT_EQ(model->forward(batch).y.sizes().vec(), (std::vector<int64_t>{rows, 4}));
  }
  // Regression and per-token regression: values in, values out, with their loss.
  const DataShape values{InputKind::channels, 2, TargetKind::values, 3};
  for (const auto pooling : {Pooling::mean, Pooling::none}) {
    m.pooling = pooling;
    SequenceModel model(m, values, 2);
    const Tensor y = model->forward({torch::randn({6, 2}), std::vector<int64_t>{0, 2, 6}}).y;
    const Tensor target = torch::ones_like(y);
    const double expected = (y - 1).square().mean().item<double>();
    EXPECT_NEAR(loss_of(TargetKind::values, y, target).item<double>(), expected, 1e-6);
    EXPECT_EQ(y.size(0), pooling == Pooling::mean ? 2 : 6);
  }
}

// The head of pairs by its formula, on documents that go through a network without pairs alone.
TEST(SequenceModel, PairsAreToldFromBothDocuments) {
  for (const Kernels kernels : {Kernels::reference, Kernels::fused}) {
    ModelOptions m;
    m.width = 6;
    m.state = 8;
    m.heads = 2;
    m.depth = 2;
    DataShape shape{InputKind::tokens, 11, TargetKind::classes, 2};
    SequenceModel one(m, shape, 5);
    shape.towers = 2;
    SequenceModel two(m, shape, 5);  // the weights of a name are the same
    for (SequenceModel model : {one, two}) {
      model->engine.kernels = kernels;
      model->eval();
    }
    torch::NoGradGuard no_grad;
    one->head->weight.copy_(torch::eye(6).slice(0, 0, 2));  // shows two of the pooled channels
    one->head->bias.zero_();
    const auto tokens = torch::randint(11, {17}, torch::kInt64);
    const std::vector<int64_t> offsets{0, 3, 8, 9, 17};  // two pairs
    const Tensor y = two->forward({tokens, offsets}).y;
    ASSERT_EQ(y.sizes().vec(), (std::vector<int64_t>{2, 2}));
    // All pooled channels, two at a time.
    std::vector<Tensor> pooled;
    for (int64_t c = 0; c < 6; c += 2) {
      one->head->weight.copy_(torch::eye(6).slice(0, c, c + 2));
      pooled.push_back(one->forward({tokens, offsets}).y);
    }
    const Tensor x = torch::cat(pooled, 1);
    for (int64_t pair = 0; pair < 2; ++pair) {
      const Tensor a = x[2 * pair], b = x[2 * pair + 1];
      const Tensor h =
          torch::cat({a, b, a - b, a * b}).matmul(two->hidden->weight.t()) + two->hidden->bias;
      const Tensor g = 0.5 * h * (1 + torch::tanh(0.7978845608 * (h + 0.044715 * h * h * h)));
      const Tensor expected = g.matmul(two->head->weight.t()) + two->head->bias;
      EXPECT_LE(relative_error(y[pair], expected, 1e-3), 1e-5);
    }
  }
}

TEST(SequenceModel, LastPoolingReadsTheLastTokenAndMeanAveragesTheTrueLength) {
  ModelOptions m = small();
  m.pooling = Pooling::none;
  SequenceModel tokens(m, kTokens, 2);
  m.pooling = Pooling::last;
  SequenceModel last(m, kTokens, 2);
  m.pooling = Pooling::mean;
  SequenceModel mean(m, kTokens, 2);
  const Packed batch = token_batch();
  const Tensor all = tokens->forward(batch).y;  // the head is linear, so it commutes with both
  EXPECT_LE(relative_error(last->forward(batch).y[2], all[75]), 1e-5);
  EXPECT_LE(relative_error(mean->forward(batch).y[2], all.narrow(0, 6, 70).mean(0)), 1e-5);
}

TEST(SequenceModel, StatesHandedOverContinueTheSequence) {
  ModelOptions m = small();
  m.bidirectional = false;
  m.pooling = Pooling::none;
  SequenceModel model(m, kTokens, 2);
  model->to(torch::kFloat64);
  const Tensor tokens = torch::randint(11, {90}, torch::kInt64);
  const auto whole = model->forward({tokens, std::vector<int64_t>{0, 90}});
  const auto a = model->forward({tokens.narrow(0, 0, 33), std::vector<int64_t>{0, 33}});
  const auto b =
      model->forward({tokens.narrow(0, 33, 57), std::vector<int64_t>{0, 57}}, {}, a.final);
  EXPECT_LE(relative_error(torch::cat({a.y, b.y}), whole.y), 1e-12);
  EXPECT_THROW(model->forward({tokens, std::vector<int64_t>{0, 90}}, {}, {States{}}),
               std::invalid_argument);
}

TEST(SequenceModel, EmptyBatchGivesNothing) {
  SequenceModel model(small(), kTokens, 2);
  const Packed empty(torch::empty({0}, torch::kInt64), std::vector<int64_t>{0});
  EXPECT_EQ(model->forward(empty).y.sizes().vec(), (std::vector<int64_t>{0, 4}));
}

TEST(SequenceModel, WrongInputIsRefused) {
  SequenceModel model(small(), kTokens, 2);
  EXPECT_THROW(model->forward({torch::zeros({3, 2}), std::vector<int64_t>{0, 3}}),
               std::invalid_argument);
  for (const int64_t wrong : {-1, 11}) {  // the vocabulary is 11
    const Packed tokens(torch::tensor(std::vector<int64_t>{3, wrong}, torch::kInt64),
                        std::vector<int64_t>{0, 2});
    EXPECT_THROW(model->forward(tokens), std::invalid_argument);
  }
  EXPECT_THROW(Packed(torch::zeros({3}), std::vector<int64_t>{0, 2}), std::invalid_argument);
  EXPECT_THROW(Packed(torch::zeros({3}), std::vector<int64_t>{0, 3, 3}), std::invalid_argument);
  ModelOptions m = small();
  m.layer = "gru";
  EXPECT_THROW(SequenceModel(m, kTokens, 2), std::invalid_argument);
}

TEST(SequenceModel, WeightsAreAPureFunctionOfTheSeed) {
  SequenceModel a(small(), kTokens, 2), b(small(), kTokens, 2), c(small(), kTokens, 3);
  const auto pa = a->named_parameters(), pb = b->named_parameters(), pc = c->named_parameters();
  for (const auto& p : pa) {
    EXPECT_TRUE(p.value().equal(pb[p.key()])) << p.key();
    if (p.key().find(".norm.") == std::string::npos) {
      EXPECT_FALSE(p.value().equal(pc[p.key()])) << p.key();
    }
  }
  EXPECT_FALSE(pa["blocks.0.layer.B"].equal(pa["blocks.1.layer.B"]));
  EXPECT_FALSE(pa["blocks.0.gate.weight"].equal(pa["blocks.1.gate.weight"]));
}

TEST(Dropout, MaskIsSharedOverTimeAndAFunctionOfTheSequence) {
  const Pass pass{9, 4, {3, 8, 5}};
  const auto options = torch::TensorOptions(torch::kFloat64);
  const Tensor mask = dropout_mask(pass, 1, 0, 2000, 0.3, options);
  EXPECT_EQ(mask.sizes().vec(), (std::vector<int64_t>{3, 2000}));
  // Kept channels are scaled up; 6,000 draws at 0.7, deviation 0.006.
  EXPECT_NEAR(mask.gt(0).to(torch::kFloat64).mean().item<double>(), 0.7, 0.03);
  EXPECT_NEAR(mask.max().item<double>(), 1 / 0.7, 1e-12);
  // A sequence has the same mask in any batch, and another at another step, block or site.
  const Tensor alone = dropout_mask({9, 4, {8}}, 1, 0, 2000, 0.3, options);
  EXPECT_TRUE(alone[0].equal(mask[1]));
  EXPECT_FALSE(dropout_mask({9, 5, {8}}, 1, 0, 2000, 0.3, options).equal(alone));
  EXPECT_FALSE(dropout_mask({9, 4, {8}}, 2, 0, 2000, 0.3, options).equal(alone));
  EXPECT_FALSE(dropout_mask({9, 4, {8}}, 1, 1, 2000, 0.3, options).equal(alone));

  ModelOptions m = small();
  m.dropout = 0.4;
  SequenceModel model(m, kTokens, 2);
  const Packed batch = token_batch();
  const Tensor once = model->forward(batch, {1, 1, {0, 1, 2}}).y;
  EXPECT_TRUE(once.equal(model->forward(batch, {1, 1, {0, 1, 2}}).y));
  EXPECT_FALSE(once.equal(model->forward(batch, {1, 2, {0, 1, 2}}).y));
  EXPECT_THROW(model->forward(batch, {1, 1, {0, 1}}), std::invalid_argument);
  model->eval();
  EXPECT_TRUE(model->forward(batch).y.equal(model->forward(batch, {1, 2, {0, 1, 2}}).y));
}

// Block by block from the formulas: the normalised input through the paper's own coordinates, P z.
TEST(SequenceModel, StateNormsAreThoseOfTheHiddenStateAndLeaveNoTrace) {
  ModelOptions m = small(NormKind::batch);
  m.dropout = 0.4;
  m.depth = 2;
  SequenceModel model(m, kTokens, 2);
  model->to(torch::kFloat64);
  model->forward(token_batch(), {1, 1, {0, 1, 2}});
  const Packed batch = token_batch();
  std::map<std::string, Tensor> before;
  for (const auto& b : model->named_buffers()) before[b.key()] = b.value().clone();
  const std::vector<Tensor> norms = model->state_norms(batch);
  for (const auto& b : model->named_buffers()) EXPECT_TRUE(b.value().equal(before.at(b.key())));
  EXPECT_TRUE(model->is_training());

  ASSERT_EQ(norms.size(), 2u);
  const Tensor x = model->embedding->forward(batch.values);
  const Tensor hat = (x - x.mean(0)) / torch::sqrt(x.var(0, /*unbiased=*/false) + 1e-5);
  const auto& block = model->blocks[0];
  auto* layer = dynamic_cast<RotRNNImpl*>(block->layer.get());
  ASSERT_NE(layer, nullptr);
  const RotRNNOutput out =
      layer->forward(batch.with(hat * block->norm->weight + block->norm->bias), {}, true);
  EXPECT_LE(relative_error(norms[0], out.head_norms), 1e-12);
  EXPECT_EQ(norms[1].sizes(), norms[0].sizes());
  EXPECT_FALSE(norms[1].equal(norms[0]));
}

TEST(Groups, FollowTheNames) {
  ModelOptions m = small();
  m.activation = Activation::full_glu;
  SequenceModel model(m, kTokens, 2);
  std::map<ParameterGroup, std::set<std::string>> names;
  for (const auto& p : model->named_parameters()) {
    if (p.key().find("blocks.1") == std::string::npos)
      names[group_of(*model, p.key())].insert(p.key());
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
  m.init.theta_form = ThetaForm::log;
  EXPECT_EQ(group_of(*SequenceModel(m, kTokens, 2), "blocks.0.layer.theta_log"),
            ParameterGroup::recurrent);
}

}  // namespace
}  // namespace rotrnn
