#include "rotrnn/layers/lru/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rotrnn {

void load_lru(const LayerOptions& o, const LruParameters& parameters, const LayerValues& values) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument(fmt::format(
        "LRU: load: {}; make the layer with the same width, state = 2S and direction, and gamma = "
        "\"learned\"",
        what));
  };
  if (o.width != parameters.width || o.complex_states() != parameters.states) {
    refuse(fmt::format("parameters of width {} with {} states, where this layer has {} and {}",
                       parameters.width, parameters.states, o.width, o.complex_states()));
  }
  parameters.each([&](const char* name, const std::vector<double>& given) {
    const size_t size = values.tensors.find(name).size();
    if (size != given.size()) {
      refuse(fmt::format("{} has {} numbers where this layer has {}", name, given.size(), size));
    }
  });
  parameters.each([&](const char* name, const std::vector<double>& given) {
    std::transform(given.begin(), given.end(), values.tensors.find(name).begin(),
                   [](double x) { return static_cast<float>(x); });
  });
}

}  // namespace rotrnn
