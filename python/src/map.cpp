#include "python/src/map.h"

#include <pybind11/stl.h>

#include <array>

#include "python/src/address.h"
#include "python/src/system.h"
#include "rotrnn/kernels/maps/rotrnn_map.h"

namespace py = pybind11;

namespace rotrnn::python {
namespace {

using kernels::RotrnnMapSizes;

/// theta, gamma_log, M, B, C, C_reverse.
using ParameterAddresses = std::array<Address, 6>;

kernels::RotrnnParameters<const float> given(const ParameterAddresses& p) {
  return {in(p[0]), in(p[1]), in(p[2]), in(p[3]), in(p[4]), in(p[5])};
}

RotrnnMapSizes make_sizes(size_t width, size_t state, size_t heads, bool bidirectional,
                          bool stationary, int normalisation, double c, int threads) {
  RotrnnMapSizes sizes;
  sizes.D = width, sizes.N = state, sizes.H = heads;
  sizes.bidirectional = bidirectional, sizes.stationary = stationary;
  sizes.normalisation = static_cast<kernels::Normalisation>(normalisation);
  sizes.c = c, sizes.threads = threads;
  return sizes;
}

void map_forward(const RotrnnMapSizes& sizes, const ParameterAddresses& parameters,
                 const SystemAddresses& s, Address P) {
  const kernels::RotrnnForward<float> job{given(parameters), system_at(s, out),
                                          reinterpret_cast<double*>(P)};
  kernels::rotrnn_map_forward<float>(sizes, {&job, 1});
}

void map_backward(const RotrnnMapSizes& sizes, const ParameterAddresses& parameters, Address P,
                  const SystemAddresses& s, const ParameterAddresses& d) {
  const kernels::RotrnnBackward<float> job{
      given(parameters),
      reinterpret_cast<const double*>(P),
      system_at(s, in),
      {out(d[0]), out(d[1]), out(d[2]), out(d[3]), out(d[4]), out(d[5])}};
  kernels::rotrnn_map_backward<float>(sizes, {&job, 1});
}

}  // namespace

void bind_map(py::module_& m) {
  using Free = py::call_guard<py::gil_scoped_release>;
  py::class_<RotrnnMapSizes>(m, "MapSizes",
                             "Of a RotRNN layer; normalisation 0: xi, 1: alpha, 2: none.")
      .def(py::init(&make_sizes), py::arg("width"), py::arg("state"), py::arg("heads"),
           py::arg("bidirectional"), py::arg("stationary"), py::arg("normalisation"), py::arg("c"),
           py::arg("threads"));
  m.def("map_forward", &map_forward, Free(), py::arg("sizes"), py::arg("parameters"),
        py::arg("system"), py::arg("P"));
  m.def("map_backward", &map_backward, Free(), py::arg("sizes"), py::arg("parameters"),
        py::arg("P"), py::arg("dsystem"), py::arg("dparameters"));
}

}  // namespace rotrnn::python
