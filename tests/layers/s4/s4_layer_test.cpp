// S4 and Liquid-S4 as layers: what a file keeps, and what they refuse.

#include "rotrnn/network/single_layer.h"
#include "rotrnn/training/checkpoint/weight_file.h"
#include "tests/support/folder.h"
#include "tests/support/numbers.h"

namespace rotrnn::testing {
namespace {

using test::message_of;

LayerOptions s4(const char* layer, int64_t width, int64_t state) {
  LayerOptions o;
  o.layer = layer;
  o.width = width;
  o.state = state;
  return o;
}

std::vector<float> run(SingleLayer& layer, const std::vector<int64_t>& offsets,
                       const std::vector<float>& u) {
  std::vector<float> y(u.size());
  layer.forward({offsets, u.data(), false, {}}, {y.data(), {}});
  return y;
}

TEST(S4Layer, AFileKeepsItsLength) {
  const test::Folder folder;
  LayerOptions o = s4("s4", 3, 6);
  o.bidirectional = true;
  SingleLayer saved(o, /*seed=*/1), loaded(o, /*seed=*/2);
  const std::vector<float> u = as<float>(normal(33, 1));
  const std::vector<int64_t> offsets{0, 7, 11};
  const std::vector<float> y = run(saved, offsets, u);
  EXPECT_EQ(saved.weights().integers(), std::vector<int64_t>{7});
  write_safetensors(folder / "layer.safetensors", tensors_of(saved.weights()));
  load_weights(SafeTensorFile(folder / "layer.safetensors"), loaded.weights());
  EXPECT_EQ(loaded.weights().integers(), std::vector<int64_t>{7});
  EXPECT_EQ(run(loaded, offsets, u), y);
}

TEST(S4Layer, HasNoStates) {
  for (const char* name : {"s4", "liquid_s4"}) {
    SingleLayer layer(s4(name, 2, 4), 0);
    EXPECT_EQ(layer.state_size(), 0u);
    const std::vector<int64_t> offsets{0, 4};
    const std::vector<float> u(8), state(8);
    std::vector<float> y(8), final(8);
    for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
      layer.engine.kernels = kernels;
      const LayerInput given{offsets, u.data(), false, {state.data(), nullptr}};
      const std::string message = message_of<std::invalid_argument>([&] {
        layer.forward(given, {y.data(), {}});
      });
      EXPECT_NE(message.find("convolution"), std::string::npos) << message;
      const LayerInput plain{offsets, u.data(), false, {}};
      EXPECT_THROW(layer.forward(plain, {y.data(), {final.data(), nullptr}}),
                   std::invalid_argument);
    }
  }
}

TEST(LiquidLayer, RefusesSequencesThatAreTooShortForTheReferenceMode) {
  LayerOptions o = s4("liquid_s4", 2, 4);
  o.liquid_s4.mode = LiquidMode::reference;
  SingleLayer layer(o, 0);
  for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
    layer.engine.kernels = kernels;
    for (const int64_t tokens : {1, 2, 4}) {
      const std::vector<float> u(static_cast<size_t>(2 * (5 + tokens)), 0.5f);
      const std::string message = message_of<std::invalid_argument>([&] {
        run(layer, {0, 5, 5 + tokens}, u);
      });
      EXPECT_NE(message.find(std::to_string(tokens) + " tokens is too short"), std::string::npos)
          << message;
    }
    EXPECT_NO_THROW(run(layer, {0, 5}, std::vector<float>(10)));
  }
}

}  // namespace
}  // namespace rotrnn::testing
