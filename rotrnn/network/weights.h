#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/spec/parameter.h"

namespace rotrnn {

/// Where the parameters and buffers of a network are: one flat array of float32 for all parameters,
/// one for the float buffers, one for the integers. Gradients and moments are arrays of the same
/// layout as the parameters.
struct WeightLayout {
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    ParameterGroup group;
    size_t offset, count;
  };
  struct Buffer {
    std::string name;
    std::vector<int64_t> shape;
    bool integer;
    size_t offset, count;  // in the array of its type
  };
  /// The parameters of a group are neighbours in the flat array.
  struct Range {
    ParameterGroup group;
    size_t offset, count;
  };

  std::vector<Parameter> parameters;  // in the order of the network
  std::vector<Buffer> buffers;
  std::vector<Range> ranges;
  size_t size = 0, floats = 0, integers = 0;  // of the three arrays

  explicit WeightLayout(const TensorSpecs& specs);

  /// The parameter of that name; null when there is none.
  const Parameter* find(std::string_view name) const;
};

/// An array with one number for each parameter: values, gradients, or moments.
class FlatArray {
 public:
  explicit FlatArray(const WeightLayout& layout) : values_(layout.size) {}

  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }
  std::span<float> all() { return values_; }
  std::span<const float> all() const { return values_; }

  std::span<float> of(const WeightLayout::Parameter& p) { return all().subspan(p.offset, p.count); }
  std::span<const float> of(const WeightLayout::Parameter& p) const {
    return all().subspan(p.offset, p.count);
  }

 private:
  kernels::AlignedFloats values_;
};

/// All that a network has learned: parameters and buffers.
class Weights {
 public:
  explicit Weights(const TensorSpecs& specs);

  const WeightLayout& layout() const { return layout_; }
  FlatArray& parameters() { return parameters_; }
  const FlatArray& parameters() const { return parameters_; }
  std::vector<float>& buffers() { return floats_; }
  const std::vector<float>& buffers() const { return floats_; }
  std::vector<int64_t>& integers() { return integers_; }
  const std::vector<int64_t>& integers() const { return integers_; }

  /// A parameter or float buffer by its name; empty when there is none.
  std::span<float> find(std::string_view name);
  std::span<const float> find(std::string_view name) const {
    return const_cast<Weights*>(this)->find(name);
  }

 private:
  WeightLayout layout_;
  FlatArray parameters_;
  std::vector<float> floats_;
  std::vector<int64_t> integers_;
};

}  // namespace rotrnn
