#include <gtest/gtest.h>

#include <fstream>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/training/inventory.h"
#include "rotrnn/training/network.h"
#include "rotrnn/training/tensor_file.h"
#include "rotrnn/training/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_config.h"

namespace rotrnn {
namespace {

using test::Folder;
using test::message_of;
using test::relative_error;
using test::tiny_config;
using torch::Tensor;

class AdamWGroups : public testing::TestWithParam<std::string> {};

TEST_P(AdamWGroups, EqualsLibTorchs) {
  ModelOptions m;
  m.layer = GetParam();
  m.s5.blocks = 2;
  m.s5.groups = S5Groups::b_and_c_decay;
  m.width = 6;
  m.state = 8;
  m.heads = 2;
  m.depth = 1;
  const DataShape shape{InputKind::channels, 2, TargetKind::values, 1};
  SequenceModel ours(m, shape, 1), theirs(m, shape, 1);
  ours->engine.threads = theirs->engine.threads = 1;
  AdamW optimiser(*ours);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const auto& p : theirs->named_parameters()) {
    const ParameterGroup group = group_of(*theirs, p.key());
    const bool recurrent =
        group == ParameterGroup::recurrent || group == ParameterGroup::recurrent_decay;
    const bool decays = group == ParameterGroup::decay || group == ParameterGroup::recurrent_decay;
    auto options = std::make_unique<torch::optim::AdamWOptions>(recurrent ? 2e-3 : 1e-2);
    options->weight_decay(decays ? 0.3 : 0);
    groups.emplace_back(std::vector<Tensor>{p.value()}, std::move(options));
  }
  torch::optim::AdamW reference(groups, torch::optim::AdamWOptions(1e-2));
  torch::manual_seed(1);
  const Packed u(torch::randn({9, 2}), std::vector<int64_t>{0, 4, 9});
  for (int64_t step = 1; step <= 20; ++step) {
    optimiser.zero_grad();
    ours->forward(u).y.square().sum().backward();
    optimiser.step(step, 1e-2, 2e-3, 0.3);
    reference.zero_grad();
    theirs->forward(u).y.square().sum().backward();
    reference.step();
  }
  // A step moves an entry by up to its rate, so 20 make 0.04 or 0.2, and a decay left out 0.06 of
  // its size; the division by √v makes rounding errors of gradients near zero as large as 1e-5.
  const auto expected = theirs->named_parameters();
  for (const auto& p : ours->named_parameters()) {
    EXPECT_LE((p.value() - expected[p.key()]).abs().max().item<double>(), 1e-4) << p.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, AdamWGroups,
                         testing::Values("rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"),
                         [](const auto& info) { return info.param; });

TEST(TensorFile, RoundTripsAndRefusesAnotherModel) {
  const Folder folder;
  const auto file = folder / "t.safetensors";
  const Tensor a = torch::randn({3, 2}), b = torch::arange(4, torch::kInt64);
  save_tensors(file, {{"a", a}, {"b", b}});
  Tensor a2 = torch::zeros({3, 2}), b2 = torch::zeros({4}, torch::kInt64);
  load_tensors(SafeTensorFile(file), {{"a", a2}, {"b", b2}});
  EXPECT_TRUE(a2.equal(a));
  EXPECT_TRUE(b2.equal(b));
  Tensor wrong = torch::zeros({2, 3});
  const auto load = [&](const NamedTensors& targets) {
    return message_of<std::runtime_error>([&] { load_tensors(SafeTensorFile(file), targets); });
  };
  EXPECT_NE(load({{"a", wrong}, {"b", b2}}).find("has shape [3, 2], expected [2, 3]"),
            std::string::npos);
  EXPECT_NE(load({{"a", a2}}).find("unexpected tensor \"b\""), std::string::npos);
  EXPECT_NE(load({{"a", a2}, {"b", b2}, {"c", wrong}}).find("\"c\""), std::string::npos);
  EXPECT_EQ(wrong.abs().sum().item<double>(), 0) << "nothing is changed by a failed load";
}

std::string metrics_without_clock(const std::filesystem::path& run) {
  std::istringstream in(read_file(run / "metrics.jsonl"));
  std::string out;
  for (std::string line; std::getline(in, line);) {
    auto json = nlohmann::ordered_json::parse(line);
    json.erase("seconds");
    json.erase("tokens_per_second");
    json.erase("memory_mb");
    out += json.dump() + "\n";
  }
  return out;
}

TEST(Train, TwoRunsOfOneSeedAreTheSame) {
  const Folder folder;
  const auto a = train({tiny_config(), folder / "a", false, {}}, {});
  const auto b = train({tiny_config(), folder / "b", false, {}}, {});
  EXPECT_TRUE(a.finished && b.finished);
  EXPECT_EQ(a.test.loss, b.test.loss);
  EXPECT_EQ(metrics_without_clock(folder / "a"), metrics_without_clock(folder / "b"));
  EXPECT_EQ(read_file(folder / "a/last/weights.safetensors"),
            read_file(folder / "b/last/weights.safetensors"));
  EXPECT_EQ(read_file(folder / "a/last/optimiser.safetensors"),
            read_file(folder / "b/last/optimiser.safetensors"));
  Config other = tiny_config();
  other.training.seed = 1;
  train({other, folder / "c", false, {}}, {});
  EXPECT_NE(read_file(folder / "a/last/weights.safetensors"),
            read_file(folder / "c/last/weights.safetensors"));
}

TEST(Train, StoppedAndResumedEqualsUnbroken) {
  const Folder folder;
  train({tiny_config(), folder / "whole", false, {}}, {});
  int64_t stop_at = 0;
  TrainObserver observer;
  int64_t seen = 0;
  observer.step = [&](const StepReport& r) { seen = r.step; };
  observer.stop = [&] { return seen >= stop_at; };
  TrainRequest request{tiny_config(), folder / "parts", false, {}};
  for (const int64_t at : {1, 8, 13, 24}) {
    stop_at = at;
    const auto outcome = train(request, observer);
    EXPECT_EQ(outcome.step, at);
    EXPECT_EQ(outcome.finished, at == 24);
    request.resume = true;
  }
  for (const char* file : {"last/weights.safetensors", "last/optimiser.safetensors",
                           "last/state.json", "best/weights.safetensors"}) {
    EXPECT_EQ(read_file(folder / "whole" / file), read_file(folder / "parts" / file)) << file;
  }
  EXPECT_EQ(metrics_without_clock(folder / "whole"), metrics_without_clock(folder / "parts"));
}

TEST(Train, EveryLayerResumesAsUnbroken) {
  for (const char* layer : {"lru", "s5"}) {
    const Folder folder;
    Config config = tiny_config();
    config.model.layer = layer;
    config.model.s5.blocks = 2;
    config.model.s5.step_rescale = 1.5;
    config.model.lru.gamma = LruGamma::fixed;
    config.training.steps = 12;
    config.training.evaluate_every = 4;
    const auto whole = train({config, folder / "whole", false, {}}, {});
    TrainObserver observer;
    int64_t seen = 0;
    observer.step = [&](const StepReport& r) { seen = r.step; };
    observer.stop = [&] { return seen == 5; };
    train({config, folder / "parts", false, {}}, observer);
    const auto resumed = train({config, folder / "parts", true, {}}, {});
    EXPECT_EQ(resumed.test.loss, whole.test.loss) << layer;
    EXPECT_TRUE(std::isfinite(whole.test.loss));
    for (const char* file : {"last/weights.safetensors", "last/optimiser.safetensors"}) {
      EXPECT_EQ(read_file(folder / "whole" / file), read_file(folder / "parts" / file)) << file;
    }
    // The settings of the layer are read back from the checkpoint.
    EvaluationRequest request;
    request.run = folder / "whole";
    request.engine = config.training.engine();
    EXPECT_EQ(evaluate_run(request).scores.loss, whole.test.loss);
  }
}

TEST(Train, AccumulationWithLayerNormEqualsTheWholeBatch) {
  const Folder folder;
  Config config = tiny_config();
  config.model.norm = NormKind::layer;
  config.training.steps = 3;
  config.training.evaluate_every = 3;
  train({config, folder / "a", false, {}}, {});
  config.training.accumulate = 4;
  train({config, folder / "b", false, {}}, {});
  const SafeTensorFile a(folder / "a/last/optimiser.safetensors");
  const SafeTensorFile b(folder / "b/last/optimiser.safetensors");
  for (const std::string& name : a.names()) {
    if (!name.starts_with("first.")) continue;
    EXPECT_LE(relative_error(to_tensor(b.at(name)), to_tensor(a.at(name)), 1e-6), 1e-3) << name;
  }
}

TEST(Train, ClippingBoundsTheGradient) {
  ModelOptions m;
  m.width = 4;
  m.state = 4;
  m.heads = 1;
  m.depth = 1;
  SequenceModel model(m, DataShape{InputKind::channels, 1, TargetKind::values, 1}, 1);
  AdamW optimiser(*model);
  (100 * model->forward({torch::randn({5, 1}), std::vector<int64_t>{0, 5}}).y).sum().backward();
  const double norm = optimiser.gradient_norm();
  ASSERT_GT(norm, 1.0);
  optimiser.scale_gradients(1 / norm);
  EXPECT_NEAR(optimiser.gradient_norm(), 1.0, 1e-5);
}

TEST(Train, InitFromTakesTheWeightsAndReplacesAHeadOfAnotherSize) {
  const Folder folder;
  Config config = tiny_config();
  train({config, folder / "a", false, {}}, {});
  const auto best = folder / "a/best";
  SequenceModel same(config.model, describe_task(config.task).shape, 77);
  EXPECT_TRUE(take_weights(best, *same));
  const SafeTensorFile file(best / kWeightsFile);
  for (const auto& [name, tensor] : state_of(*same)) {
    EXPECT_TRUE(tensor.equal(to_tensor(file.at(name)))) << name;
  }
  DataShape shape = describe_task(config.task).shape;
  shape.outputs = 3;
  SequenceModel other(config.model, shape, 77), drawn(config.model, shape, 77);
  EXPECT_FALSE(take_weights(best, *other));
  EXPECT_TRUE(other->head->weight.equal(drawn->head->weight));
  EXPECT_TRUE(other->blocks[0]->layer->named_parameters()["M"].equal(
      to_tensor(file.at("blocks.0.layer.M"))));
  config.model.width = 12;
  SequenceModel wider(config.model, shape, 77);
  EXPECT_THROW(take_weights(best, *wider), std::invalid_argument);
}

TEST(Inventory, AddsUpAndNamesTheGroups) {
  const Config config = load_config(ROTRNN_SOURCE "/configs/speech_commands.toml", {});
  int64_t total = 0;
  for (const auto& p : inventory(config.model, describe_task(config.task).shape)) {
    total += p.count;
    if (p.name == "blocks.0.layer.theta") {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{32, 2}));
      EXPECT_EQ(p.group, "recurrent");
    }
  }
  EXPECT_EQ(total, 212'291);
  // 4·D·N + 2·D² per token, layer and pass; three passes.
  EXPECT_DOUBLE_EQ(useful_flops_per_token(config.model), 3.0 * 6 * (4 * 96 * 128 + 2 * 96 * 96));
}

TEST(Inventory, CountsOfTheOtherLayersAreThePapers) {
  const auto count = [](const char* file) {
    const Config config = load_config(std::string(ROTRNN_SOURCE "/configs/") + file, {});
    // N is 2S: 6·D·N + 2·D² per token, layer and pass, bidirectional.
    EXPECT_DOUBLE_EQ(useful_flops_per_token(config.model), 3.0 * 6 * (6 * 96 * 128 + 2 * 96 * 96));
    int64_t total = 0;
    for (const auto& p : inventory(config.model, describe_task(config.task).shape)) {
      total += p.count;
    }
    return total;
  };
  EXPECT_EQ(count("lru/speech_commands.toml"), 283'139);  // the RotRNN paper's 283K
  EXPECT_EQ(count("s5/speech_commands.toml"), 283'523);   // the S5 paper says 280K

  ModelOptions m;
  m.layer = "s5";
  m.s5.groups = S5Groups::b_and_c_decay;
  for (const auto& p : inventory(m, {InputKind::channels, 1, TargetKind::values, 1})) {
    if (p.name == "blocks.0.layer.B_re") {
      EXPECT_EQ(p.group, "recurrent, decay");
    }
  }
}

}  // namespace
}  // namespace rotrnn
