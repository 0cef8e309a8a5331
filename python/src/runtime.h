#pragma once

#include <pybind11/pybind11.h>

namespace rotrnn::python {

/// Exported models: Model, Stream.
void bind_runtime(pybind11::module_& m);

}  // namespace rotrnn::python
