#include "python/src/fit.h"
#include "python/src/layers.h"
#include "python/src/map.h"
#include "python/src/runtime.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The kernels of rotrnn: pointers and sizes, nothing is checked here.";
  m.attr("__version__") = ROTRNN_VERSION;
  rotrnn::python::bind_fit(m);
  rotrnn::python::bind_layers(m);
  rotrnn::python::bind_map(m);
  rotrnn::python::bind_runtime(m);
}
