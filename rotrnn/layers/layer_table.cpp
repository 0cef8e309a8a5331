#include "rotrnn/layers/layer_table.h"

#include "rotrnn/layers/registry.h"

namespace rotrnn {

const LayerKind& layer_kind(const std::string& name) {
  return kLayerKinds[layer_index(name)];
}

}  // namespace rotrnn
