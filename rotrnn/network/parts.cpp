#include "rotrnn/network/parts.h"

#include <string>

namespace rotrnn {
namespace {

// "blocks.K.rest" as (K, rest); false for other names.
bool in_block(const std::string& name, size_t& block, std::string& rest) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return false;
  const size_t dot = name.find('.', kBlocks.size());
  block = std::stoul(name.substr(kBlocks.size(), dot - kBlocks.size()));
  rest = name.substr(dot + 1);
  return true;
}

NetworkParts<float>::Block& block_at(NetworkParts<float>& parts, size_t block) {
  if (parts.blocks.size() <= block) parts.blocks.resize(block + 1);
  return parts.blocks[block];
}

}  // namespace

NetworkParts<float> parts_of(const WeightLayout& layout, FlatArray& array) {
  NetworkParts<float> out;
  for (const auto& p : layout.parameters) {
    size_t block = 0;
    std::string name = p.name;
    LinearParts<float>* linear = nullptr;
    if (in_block(p.name, block, name)) {
      auto& b = block_at(out, block);
      linear = name.starts_with("norm.")    ? &b.norm
               : name.starts_with("value.") ? &b.value
               : name.starts_with("gate.")  ? &b.gate
                                            : nullptr;
    } else {
      linear = name.starts_with("encoder.")  ? &out.encoder
               : name.starts_with("hidden.") ? &out.hidden
               : name.starts_with("head.")   ? &out.head
                                             : nullptr;
    }
    if (linear == nullptr) continue;  // of a layer or the front end
    (name.ends_with(".bias") ? linear->bias : linear->weight) = array.of(p).data();
  }
  return out;
}

NetworkParts<float> parts_of(Weights& weights) {
  NetworkParts<float> out = parts_of(weights.layout(), weights.parameters());
  for (const auto& b : weights.layout().buffers) {
    size_t block = 0;
    std::string name;
    if (b.integer || !in_block(b.name, block, name)) continue;
    float* data = weights.buffers().data() + b.offset;
    if (name == "norm.running_mean") out.blocks[block].running_mean = data;
    if (name == "norm.running_var") out.blocks[block].running_var = data;
  }
  return out;
}

}  // namespace rotrnn
