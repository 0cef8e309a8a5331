#include "rotrnn/network/weights.h"

#include <algorithm>

namespace rotrnn {

WeightLayout::WeightLayout(const TensorSpecs& specs) {
  for (const ParameterSpec& p : specs.parameters) {
    parameters.push_back({p.name, p.shape, p.group, 0, count_of(p.shape)});
  }
  for (const auto group : {ParameterGroup::recurrent, ParameterGroup::recurrent_decay,
                           ParameterGroup::no_decay, ParameterGroup::decay}) {
    const size_t begin = size;
    for (Parameter& p : parameters) {
      if (p.group != group) continue;
      p.offset = size;
      size += p.count;
    }
    if (size > begin) ranges.push_back({group, begin, size - begin});
  }
  for (const BufferSpec& b : specs.buffers) {
    size_t& end = b.integer ? integers : floats;
    buffers.push_back({b.name, b.shape, b.integer, end, count_of(b.shape)});
    end += buffers.back().count;
  }
}

const WeightLayout::Parameter* WeightLayout::find(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& p) { return p.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

Weights::Weights(const TensorSpecs& specs)
    : layout_(specs), parameters_(layout_), floats_(layout_.floats), integers_(layout_.integers) {}

std::span<float> Weights::find(std::string_view name) {
  if (const auto* p = layout_.find(name)) return parameters_.of(*p);
  for (const auto& b : layout_.buffers) {
    if (b.name == name && !b.integer) return std::span(floats_).subspan(b.offset, b.count);
  }
  return {};
}

}  // namespace rotrnn
