#include "rotrnn/layers/layer_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "rotrnn/layers/registry.h"
#include "tests/layers/recorded.h"

namespace rotrnn {
namespace {

LayerOptions options_for(const char* layer) {
  LayerOptions o;
  o.layer = layer;
  o.width = 3;
  o.state = 12;
  o.rotrnn.heads = 4;
  o.s5.blocks = 2;
  return o;
}

// The registry has a copy of part of the table.
TEST(LayerTable, IsTheRegistry) {
  std::vector<std::string> names;
  for (const LayerKind& kind : kLayerKinds) {
    names.emplace_back(kind.name);
    EXPECT_EQ(kind.summary, layer_summary(kind.name));
    EXPECT_EQ(kind.channels, has_channels(options_for(kind.name)));
    EXPECT_EQ(kind.describe(options_for(kind.name)), describe_layer(options_for(kind.name)));
    EXPECT_EQ(&layer_kind(kind.name), &kind);
  }
  EXPECT_EQ(names, layer_names());
}

TEST(LayerTable, NamesTheNearestLayer) {
  try {
    layer_kind("rotrn");
    FAIL();
  } catch (const SettingError& e) {
    EXPECT_EQ(e.key(), "layer");
    EXPECT_EQ(std::string(e.what()),
              fmt::format("unknown layer \"rotrn\"; there are {}; did you mean \"rotrnn\"?",
                          fmt::join(layer_names(), ", ")));
  }
}

// Each line of the table is of one layer: its functions fit each other.
TEST(LayerTable, LinesAreWhole) {
  for (const LayerKind& kind : kLayerKinds) {
    SCOPED_TRACE(kind.name);
    const LayerOptions options = options_for(kind.name);
    EXPECT_NO_THROW(kind.check(options, true));
    testing::OwnedLayer layer(kind.tensors(options));
    kind.draw(options, 1, 2, layer.values);
    if (kind.prepare != nullptr) kind.prepare(options, layer.values, 9);
    const MapRequest request{options, {&layer.values, 1}};
    Description<double> description;
    MapTrace trace;
    kind.map(request, {&description, 1}, trace);
    EXPECT_EQ(std::holds_alternative<Channel<double>>(description), kind.channels);
    kind.map_backward(request, trace, {&description, 1}, {&layer.gradients, 1});
    const Recurrence recurrence = kind.recurrence(options, layer.values, true);
    EXPECT_EQ(std::holds_alternative<ChannelSteps>(recurrence), kind.channels);
  }
}

TEST(LayerTable, NormGroups) {
  for (const LayerKind& kind : kLayerKinds) {
    SCOPED_TRACE(kind.name);
    const LayerStates norms = kind.states(options_for(kind.name));
    EXPECT_EQ(norms.groups, std::string(kind.name) == "rotrnn" ? 4 : 1);
    EXPECT_EQ(norms.scale, std::string(kind.name) == "s5" ? std::numbers::sqrt2 : 1);
  }
}

// The states of a group are those of a head: their |λ| is its γ.
TEST(LayerTable, NormGroupsOfRotrnnAreHeads) {
  const LayerKind& kind = layer_kind("rotrnn");
  for (const int64_t state : {12, 16}) {  // heads of 3 and of 4
    LayerOptions options = options_for("rotrnn");
    options.state = state;
    testing::OwnedLayer layer(kind.tensors(options));
    kind.draw(options, 1, 2, layer.values);
    const auto s = std::get<Diagonal<double>>(kind.recurrence(options, layer.values, true));
    const int64_t groups = kind.states(options).groups;
    ASSERT_EQ(s.states % groups, 0);
    for (size_t j = 0; j < static_cast<size_t>(s.states); ++j) {
      const size_t head = j / static_cast<size_t>(s.states / groups);
      const double gamma = std::exp(-std::exp(layer.values.tensors["gamma_log"][head]));
      EXPECT_NEAR(std::hypot(s.lambda_re[j], s.lambda_im[j]), gamma, 1e-6) << state << " " << j;
    }
  }
}

}  // namespace
}  // namespace rotrnn
