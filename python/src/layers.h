#pragma once

#include <pybind11/pybind11.h>

namespace rotrnn::python {

/// The recurrence of a layer, forward and backward, its memory, and the number of CPUs.
void bind_layers(pybind11::module_& m);

}  // namespace rotrnn::python
