#include "rotrnn/training/bench/inventory.h"

#include <gtest/gtest.h>

#include "rotrnn/network/network.h"

namespace rotrnn {
namespace {

Config load(const std::string& file) {
  return load_config(ROTRNN_SOURCE "/configs/" + file, {});
}

int64_t total(const ModelOptions& options, const DataShape& shape) {
  int64_t sum = 0;
  for (const auto& p : inventory(options, shape)) sum += p.count;
  EXPECT_EQ(parameter_count(options, shape), sum);
  return sum;
}

TEST(Inventory, AddsUpAndNamesTheGroups) {
  const Config config = load("speech_commands.toml");
  const DataShape shape = describe_task(config.task).shape;
  bool seen = false;
  for (const auto& p : inventory(config.model, shape)) {
    if (p.name != "blocks.0.layer.theta") continue;
    EXPECT_EQ(p.shape, (std::vector<int64_t>{32, 2}));
    EXPECT_EQ(p.group, "recurrent");
    seen = true;
  }
  EXPECT_TRUE(seen);
  EXPECT_EQ(total(config.model, shape), 212'291);
  EXPECT_EQ(Network(config.model, shape, 0).layout().size, 212'291u);
  // 4·D·N + 2·D² per token, layer and pass; three passes.
  EXPECT_DOUBLE_EQ(useful_flops_per_token(config.model), 3.0 * 6 * (4 * 96 * 128 + 2 * 96 * 96));
}

TEST(Inventory, SpeechCommandsHasThePublishedParameterCount) {
  ModelOptions m;
  m.width = 96;
  m.state = 128;
  m.rotrnn.heads = 32;
  m.depth = 6;
  const DataShape shape{InputKind::channels, 1, TargetKind::classes, 35};
  EXPECT_EQ(total(m, shape), 212'291);
  m.bidirectional = true;
  EXPECT_EQ(total(m, shape), 286'019);
  m.rotrnn.heads = 64;
  EXPECT_EQ(total(m, shape), 284'675);
}

TEST(Inventory, CountsOfTheOtherLayersAreThePapers) {
  const auto count = [](const char* file) {
    const Config config = load(file);
    // N is 2S: 6·D·N + 2·D² per token, layer and pass, bidirectional.
    EXPECT_DOUBLE_EQ(useful_flops_per_token(config.model), 3.0 * 6 * (6 * 96 * 128 + 2 * 96 * 96));
    return total(config.model, describe_task(config.task).shape);
  };
  EXPECT_EQ(count("lru/speech_commands.toml"), 283'139);  // the RotRNN paper's 283K
  EXPECT_EQ(count("s5/speech_commands.toml"), 283'523);   // the S5 paper says 280K

  ModelOptions m;
  m.layer = "s5";
  m.s5.groups = S5Groups::b_and_c_decay;
  int seen = 0;
  for (const auto& p : inventory(m, {InputKind::channels, 1, TargetKind::values, 1})) {
    if (p.name != "blocks.0.layer.B_re") continue;
    EXPECT_EQ(p.group, "recurrent, decay");
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace rotrnn
