#pragma once

#include <array>
#include <string_view>

#include "python/src/address.h"
#include "rotrnn/spec/description.h"

namespace rotrnn::python {

/// The fields of a Diagonal in the order of System in Python (plain/diagonal.py), which has no b
/// and e.
using SystemAddresses = std::array<Address, 8>;

/// Those fields as pointers; `to_pointer` is in() or out().
template <class Pointer>
DiagonalFields<Pointer> system_at(const SystemAddresses& addresses,
                                  Pointer (*to_pointer)(Address)) {
  DiagonalFields<Pointer> system;
  size_t next = 0;
  system.each([&](std::string_view name, Pointer& field, auto) {
    if (name != "b" && name != "e") field = to_pointer(addresses.at(next++));
  });
  return system;
}

}  // namespace rotrnn::python
