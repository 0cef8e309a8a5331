#pragma once

#include <pybind11/pybind11.h>

namespace rotrnn::python {

/// Fitted models of arrays, for rotrnn/fit.py.
void bind_fit(pybind11::module_& m);

}  // namespace rotrnn::python
