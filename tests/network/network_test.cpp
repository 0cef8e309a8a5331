#include "rotrnn/network/network.h"

#include <gtest/gtest.h>

#include "tests/network/network_checks.h"

namespace rotrnn {
namespace {

using testing::cases_of;
using testing::doubles;
using testing::expect_close;
using testing::expect_fused;
using testing::expect_twins;
using testing::NetworkCase;
using testing::open_fixture;

template <class F>
void for_cases(const F& f) {
  const SafeTensorFile file = open_fixture("networks.safetensors");
  const nlohmann::json cases = cases_of(file);
  for (const auto& [name, settings] : cases.items()) {
    SCOPED_TRACE(name);
    NetworkCase c(file, name, settings);
    f(c);
  }
}

TEST(ReferenceNetwork, OutputsLossAndGradientsAreTheRecordedOnes) {
  for_cases([](NetworkCase& c) { expect_twins(c); });
}

TEST(FusedNetwork, OutputsLossAndGradientsAreTheRecordedOnes) {
  for_cases([](NetworkCase& c) { expect_fused(c, MemoryMode::normal, 2); });
}

TEST(FusedNetwork, LowMemoryComputesTheSame) {
  for_cases([](NetworkCase& c) { expect_fused(c, MemoryMode::low, 3); });
}

TEST(FusedNetwork, LayersGrowToTheBatchAsRecorded) {
  size_t grown = 0;
  for_cases([&](NetworkCase& c) {
    Workspace workspace;
    if (!c.recorded.has("grown_buffer/blocks.0.layer.length")) return;
    c.network.forward(c.input, workspace);
    for (const auto& p : c.network.layout().parameters) {
      const std::string name = "grown_param/" + p.name;
      if (!c.recorded.has(name)) continue;
      expect_close(doubles(c.network.weights().parameters().of(p)), c.recorded[name], 1e-6, name);
    }
    ++grown;
  });
  EXPECT_GE(grown, 1u);
}

}  // namespace
}  // namespace rotrnn
