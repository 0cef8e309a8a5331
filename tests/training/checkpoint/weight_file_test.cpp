#include "rotrnn/training/checkpoint/weight_file.h"

#include <gtest/gtest.h>

#include "rotrnn/base/random.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/network/network.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/tiny_config.h"

namespace rotrnn {
namespace {

using test::Folder;
using test::message_of;
using test::tiny_config;

std::vector<float> parameters(const Weights& weights) {
  return {weights.parameters().all().begin(), weights.parameters().all().end()};
}

Network network_of(const std::string& layer, uint64_t seed, int64_t width = 6) {
  ModelOptions m;
  m.layer = layer;
  m.width = width;
  m.state = 8;
  m.rotrnn.heads = 2;
  m.depth = 2;
  return Network(m, {InputKind::tokens, 7, TargetKind::classes, 3}, seed);
}

TEST(WeightFile, RoundTripsWeightsBuffersAndMoments) {
  for (const std::string layer : {"rotrnn", "s4d", "s4"}) {
    SCOPED_TRACE(layer);
    Network a = network_of(layer, 1), b = network_of(layer, 2);
    Random random(1, RandomSite::trial);
    for (float& x : a.weights().buffers()) x = static_cast<float>(random.normal());
    for (int64_t& x : a.weights().integers()) x = 12345;
    Optimiser of_a(a.layout()), of_b(a.layout());
    for (FlatArray* array : {&of_a.first(), &of_a.second()}) {
      for (float& x : array->all()) x = static_cast<float>(random.normal());
    }
    const std::string weights = safetensors_bytes("w", tensors_of(a.weights()));
    const std::string moments = safetensors_bytes("m", tensors_of(a.layout(), of_a));
    load_weights(SafeTensorFile::from_bytes(weights, "w"), b.weights());
    load_moments(SafeTensorFile::from_bytes(moments, "m"), b.layout(), of_b);
    EXPECT_EQ(parameters(b.weights()), parameters(a.weights()));
    EXPECT_EQ(b.weights().buffers(), a.weights().buffers());
    EXPECT_EQ(b.weights().integers(), a.weights().integers());
    EXPECT_TRUE(std::equal(of_a.first().all().begin(), of_a.first().all().end(),
                           of_b.first().all().begin()));
    EXPECT_TRUE(std::equal(of_a.second().all().begin(), of_a.second().all().end(),
                           of_b.second().all().begin()));
  }
}

TEST(WeightFile, OfAnotherModelIsRefusedAndNothingChanged) {
  Network network = network_of("rotrnn", 1);
  const auto load = [&](const std::vector<NamedTensor>& tensors) {
    const std::string bytes = safetensors_bytes("w", tensors);
    const std::vector<float> before = parameters(network.weights());
    const std::vector<float> buffers = network.weights().buffers();
    const auto message = message_of<std::runtime_error>(
        [&] { load_weights(SafeTensorFile::from_bytes(bytes, "w"), network.weights()); });
    EXPECT_EQ(parameters(network.weights()), before);
    EXPECT_EQ(network.weights().buffers(), buffers);
    return message;
  };
  Network other = network_of("rotrnn", 2), wide = network_of("rotrnn", 2, 9);
  EXPECT_NE(load(tensors_of(wide.weights())).find("has shape [7, 9], expected [7, 6]"),
            std::string::npos);
  // The last one too many, the last one missing, the last one of another type.
  auto tensors = tensors_of(other.weights());
  tensors.push_back({"b", tensors.back().tensor});
  EXPECT_NE(load(tensors).find("unexpected tensor \"b\""), std::string::npos);
  tensors = tensors_of(other.weights());
  const std::string last = tensors.back().name;
  tensors.pop_back();
  EXPECT_NE(load(tensors).find("\"" + last + "\""), std::string::npos);
  tensors = tensors_of(other.weights());
  tensors.back().tensor.dtype = Dtype::i32;
  EXPECT_NE(load(tensors).find("is of type I32, expected F32"), std::string::npos);
}

// --init-from: the head of another number of classes stays as it is drawn.
TEST(TakeWeights, TakesAllAndLeavesAHeadOfAnotherSize) {
  const Folder folder;
  Config config = tiny_config();
  train({config, folder / "a", false, {}}, {});
  const auto best = folder / "a/best";
  DataShape shape = describe_task(config.task).shape;
  Network same(config.model, shape, 77);
  EXPECT_TRUE(take_weights(best, same.weights()));
  const SafeTensorFile file(best / kWeightsFile);
  const auto expect_taken = [&](Network& network, bool head) {
    for (const auto& [name, tensor] : tensors_of(network.weights())) {
      if (!head && name.starts_with("head.")) continue;
      const auto saved = file.at(name).data;
      EXPECT_TRUE(std::equal(saved.begin(), saved.end(), tensor.data.begin(), tensor.data.end()))
          << name;
    }
  };
  expect_taken(same, true);
  shape.outputs = 3;
  Network other(config.model, shape, 77), drawn(config.model, shape, 77);
  EXPECT_FALSE(take_weights(best, other.weights()));
  expect_taken(other, false);
  for (const char* name : {"head.weight", "head.bias"}) {
    const auto a = other.weights().find(name), b = drawn.weights().find(name);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << name;
  }
  config.model.width = 12;
  Network wider(config.model, shape, 77);
  EXPECT_THROW(take_weights(best, wider.weights()), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn
