#pragma once

#include <cstddef>
#include <type_traits>

namespace rotrnn::kernels {

/// Calls function(size), size being a std::integral_constant for the usual sizes of a head, so that
/// loops over it unroll, and a plain size_t for the others.
template <class Function>
void with_size(size_t d, Function function) {
  switch (d) {
    case 2:
      return function(std::integral_constant<size_t, 2>());
    case 4:
      return function(std::integral_constant<size_t, 4>());
    case 6:
      return function(std::integral_constant<size_t, 6>());
    case 8:
      return function(std::integral_constant<size_t, 8>());
    case 12:
      return function(std::integral_constant<size_t, 12>());
    default:
      return function(d);
  }
}

}  // namespace rotrnn::kernels
