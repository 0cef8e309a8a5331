#include "rotrnn/layers/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rotrnn/base/text/nearest.h"
#include "rotrnn/layers/layer_table.h"

namespace rotrnn {
namespace {

// What is asked here of the table, copied by the compiler: programs that only read configs need not
// link maps and kernels.
struct LayerEntry {
  const char* name;
  const char* summary;
  bool channels;
  void (*check)(const LayerOptions&, bool sizes);
  std::string (*describe)(const LayerOptions&);
};

consteval auto entries() {
  std::array<LayerEntry, std::size(kLayerKinds)> out{};
  for (size_t i = 0; i < out.size(); ++i) {
    const LayerKind& kind = kLayerKinds[i];
    out[i] = {kind.name, kind.summary, kind.channels, kind.check, kind.describe};
  }
  return out;
}
constexpr auto kEntries = entries();

const LayerEntry& entry_of(const std::string& name) {
  return kEntries[layer_index(name)];
}

}  // namespace

size_t layer_index(const std::string& name) {
  for (size_t i = 0; i < std::size(kEntries); ++i) {
    if (name == kEntries[i].name) return i;
  }
  const auto names = layer_names();
  const std::string near = nearest(name, names);
  throw SettingError(
      "layer", fmt::format("unknown layer \"{}\"; there are {}{}", name, fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names(std::size(kEntries));
  std::transform(kEntries.begin(), kEntries.end(), names.begin(),
                 [](const LayerEntry& entry) { return entry.name; });
  return names;
}

std::string layer_summary(const std::string& name) {
  return entry_of(name).summary;
}

bool has_channels(const LayerOptions& options) {
  return entry_of(options.layer).channels;
}

std::string describe_layer(const LayerOptions& options) {
  return entry_of(options.layer).describe(options);
}

void check_layers(const LayerOptions& options) {
  entry_of(options.layer).check(options, true);
  for (const LayerEntry& entry : kEntries) entry.check(options, false);
}

}  // namespace rotrnn
