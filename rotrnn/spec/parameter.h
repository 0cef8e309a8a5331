#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rotrnn {

/// Which learning rate and decay a parameter gets.
enum class ParameterGroup {
  recurrent,        // recurrent rate, no decay
  recurrent_decay,  // recurrent rate, decay
  no_decay,         // global rate, no decay: biases and norms
  decay,            // global rate, decay
};

/// A parameter that is trained: float32.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  ParameterGroup group;
};

/// A tensor that is saved with the parameters but not trained: float32, or int64.
struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  bool integer = false;
};

/// All tensors of a layer or a network, in the order in which they are listed and saved.
struct TensorSpecs {
  std::vector<ParameterSpec> parameters;
  std::vector<BufferSpec> buffers;
};

/// The number of elements of a shape; 1 for a scalar.
inline size_t count_of(std::span<const int64_t> shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}

/// Arrays by name. Small: a layer has about ten.
template <class T>
class Views {
 public:
  void add(std::string name, std::span<T> values) { views_.emplace_back(std::move(name), values); }

  /// The array of that name; an empty one where there is none.
  std::span<T> find(std::string_view name) const {
    for (const auto& [key, values] : views_) {
      if (key == name) return values;
    }
    return {};
  }

  /// The array of that name, which must be there.
  T* operator[](std::string_view name) const {
    const std::span<T> found = find(name);
    if (found.data() == nullptr) {
      throw std::logic_error("no tensor \"" + std::string(name) + "\" in this layer");
    }
    return found.data();
  }

  auto begin() const { return views_.begin(); }
  auto end() const { return views_.end(); }

 private:
  std::vector<std::pair<std::string, std::span<T>>> views_;
};

}  // namespace rotrnn
