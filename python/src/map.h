#pragma once

#include <pybind11/pybind11.h>

namespace rotrnn::python {

/// RotRNN's parameter map and its derivative as one kernel each.
void bind_map(pybind11::module_& m);

}  // namespace rotrnn::python
