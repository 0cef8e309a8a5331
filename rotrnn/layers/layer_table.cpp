#include "rotrnn/layers/layer_table.h"

#include <fmt/format.h>

#include <vector>

#include "rotrnn/base/text/nearest.h"

namespace rotrnn {

const LayerKind& layer_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const LayerKind& kind : kLayerKinds) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  const std::string near = nearest(name, names);
  throw SettingError(
      "layer", fmt::format("unknown layer \"{}\"; there are {}{}", name, fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

}  // namespace rotrnn
