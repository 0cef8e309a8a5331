#include "rotrnn/network/single_layer.h"

#include <gtest/gtest.h>

#include "tests/network/layer_checks.h"

namespace rotrnn {
namespace {

using testing::cases_of;
using testing::expect_recorded;
using testing::open_fixture;
using testing::options_of;
using testing::Tolerances;

class SingleLayers : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_all(Kernels kernels, MemoryMode memory, const Tolerances& tolerance) {
    const SafeTensorFile file = open_fixture(std::string("layers_") + GetParam() + ".safetensors");
    size_t count = 0;
    const nlohmann::json cases = cases_of(file);
    for (const auto& [name, settings] : cases.items()) {
      expect_recorded(file, name, options_of(settings), kernels, memory, tolerance);
      ++count;
    }
    EXPECT_GT(count, 10u);
  }
};

// The results of the twins are rounded to float32 at the end.
TEST_P(SingleLayers, TwinsComputeWhatWasRecorded) {
  expect_all(Kernels::reference, MemoryMode::normal, {1e-7, 1e-7});
}

// Float32 along sequences, and maps whose gradients cancel: what the ATen path in float32 needed.
TEST_P(SingleLayers, FusedKernelsComputeWhatWasRecorded) {
  expect_all(Kernels::fused, MemoryMode::normal, {2e-5, 3e-4});
  expect_all(Kernels::fused, MemoryMode::low, {2e-5, 3e-4});
}

INSTANTIATE_TEST_SUITE_P(Layers, SingleLayers,
                         ::testing::Values("rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rotrnn
