#include "rotrnn/training/checkpoint/weight_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rotrnn {
namespace {

NamedTensor floats(const std::string& name, const std::vector<int64_t>& shape,
                   std::span<const float> values) {
  return {name, {Dtype::f32, shape, std::as_bytes(values)}};
}

// The file has exactly the expected tensors, with their shapes and types.
void check(const SafeTensorFile& file, const std::vector<NamedTensor>& wanted) {
  for (const auto& [name, tensor] : wanted) {
    const SafeTensor& found = file.at(name);
    if (found.shape != tensor.shape) {
      throw std::runtime_error(fmt::format(
          "{}: tensor \"{}\" has shape [{}], expected [{}]; the file belongs to another model",
          file.where(), name, fmt::join(found.shape, ", "), fmt::join(tensor.shape, ", ")));
    }
    if (found.dtype != tensor.dtype) {
      throw std::runtime_error(
          fmt::format("{}: tensor \"{}\" is of type {}, expected {}; the file belongs to another "
                      "model",
                      file.where(), name, dtype_name(found.dtype), dtype_name(tensor.dtype)));
    }
  }
  for (const std::string& name : file.names()) {
    if (std::none_of(wanted.begin(), wanted.end(), [&](auto& t) { return t.name == name; })) {
      throw std::runtime_error(fmt::format(
          "{}: unexpected tensor \"{}\"; the file belongs to another model", file.where(), name));
    }
  }
}

template <class T>
void read(const SafeTensorFile& file, const std::string& name, std::span<T> out) {
  const auto data = file.at(name).data;
  if (!data.empty()) std::memcpy(out.data(), data.data(), data.size());
}

}  // namespace

std::vector<NamedTensor> tensors_of(const Weights& weights) {
  std::vector<NamedTensor> out;
  for (const auto& p : weights.layout().parameters) {
    out.push_back(floats(p.name, p.shape, weights.parameters().of(p)));
  }
  for (const auto& b : weights.layout().buffers) {
    if (b.integer) {
      const auto values = std::span(weights.integers()).subspan(b.offset, b.count);
      out.push_back({b.name, {Dtype::i64, b.shape, std::as_bytes(values)}});
    } else {
      out.push_back(
          floats(b.name, b.shape, std::span(weights.buffers()).subspan(b.offset, b.count)));
    }
  }
  return out;
}

std::vector<NamedTensor> tensors_of(const WeightLayout& layout, const Optimiser& optimiser) {
  std::vector<NamedTensor> out;
  for (const auto& p : layout.parameters) {
    out.push_back(floats("first." + p.name, p.shape, optimiser.first().of(p)));
    out.push_back(floats("second." + p.name, p.shape, optimiser.second().of(p)));
  }
  return out;
}

void load_weights(const SafeTensorFile& file, Weights& weights) {
  check(file, tensors_of(weights));
  for (const auto& p : weights.layout().parameters) read(file, p.name, weights.parameters().of(p));
  for (const auto& b : weights.layout().buffers) {
    if (b.integer) {
      read(file, b.name, std::span(weights.integers()).subspan(b.offset, b.count));
    } else {
      read(file, b.name, std::span(weights.buffers()).subspan(b.offset, b.count));
    }
  }
}

void load_moments(const SafeTensorFile& file, const WeightLayout& layout, Optimiser& optimiser) {
  check(file, tensors_of(layout, optimiser));
  for (const auto& p : layout.parameters) {
    read(file, "first." + p.name, optimiser.first().of(p));
    read(file, "second." + p.name, optimiser.second().of(p));
  }
}

}  // namespace rotrnn
