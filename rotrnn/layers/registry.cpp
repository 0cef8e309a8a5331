#include "rotrnn/layers/registry.h"

#include <fmt/format.h>

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

const LayerEntry& find(const std::string& name) {
  for (const LayerEntry& entry : kEntries) {
    if (name == entry.name) return entry;
  }
  const auto names = layer_names();
  const std::string near = nearest(name, names);
  throw SettingError(
      "layer", fmt::format("unknown layer \"{}\"; there are {}{}", name, fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

}  // namespace

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const LayerEntry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::string layer_summary(const std::string& name) {
  return find(name).summary;
}

bool has_channels(const LayerOptions& options) {
  return find(options.layer).channels;
}

std::string describe_layer(const LayerOptions& options) {
  return find(options.layer).describe(options);
}

void check_layers(const LayerOptions& options) {
  find(options.layer).check(options, true);
  for (const LayerEntry& entry : kEntries) entry.check(options, false);
}

}  // namespace rotrnn
