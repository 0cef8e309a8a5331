#pragma once

#include <cstdint>

namespace rotrnn::python {

/// An address as Python has it, 0 for null.
using Address = std::uintptr_t;

inline const float* in(Address address) {
  return reinterpret_cast<const float*>(address);
}

inline float* out(Address address) {
  return reinterpret_cast<float*>(address);
}

}  // namespace rotrnn::python
