#include "rotrnn/fit/fit.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "python/src/fit.h"
#include "rotrnn/base/threads.h"

// Arrays come packed, C-contiguous and checked: rotrnn/fit.py sees to that. Errors are the fit's
// own: std::invalid_argument is a ValueError.

namespace py = pybind11;

namespace rotrnn::python {
namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Doubles = py::array_t<double, py::array::c_style>;
using Integers = py::array_t<int64_t, py::array::c_style>;

template <typename T>
std::span<const T> span_of(const py::array_t<T, py::array::c_style>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

template <typename T>
std::vector<T> copy_of(const std::optional<py::array_t<T, py::array::c_style>>& array) {
  if (!array) return {};
  return {array->data(), array->data() + array->size()};
}

int thread_count(int threads) {
  return threads > 0 ? threads : kernels::available_threads();
}

fit::Source source_of(const Floats& values, const Integers& offsets, size_t channels) {
  return fit::packed_source(span_of(values), span_of(offsets), channels);
}

fit::Fitted fit_arrays(const Floats& values, const Integers& offsets, size_t channels,
                       size_t outputs, const std::optional<Integers>& classes,
                       const std::optional<Doubles>& targets, const std::optional<Integers>& groups,
                       const std::optional<Doubles>& weights, size_t states, uint64_t seed,
                       bool balance, int threads) {
  fit::Targets t;
  t.outputs = outputs;
  t.classes = copy_of(classes);
  t.values = copy_of(targets);
  t.groups = copy_of(groups);
  t.weights = copy_of(weights);
  fit::FitOptions o;
  o.states = states;
  o.seed = seed;
  o.balance = balance;
  o.threads = thread_count(threads);
  const fit::Source source = source_of(values, offsets, channels);
  const py::gil_scoped_release free;
  return fit::fit(source, t, o);
}

kernels::FeatureBank draw(const Floats& values, const Integers& offsets, size_t channels,
                          size_t states, uint64_t seed, int threads) {
  fit::BankOptions o;
  o.states = states;
  o.seed = seed;
  const fit::Source source = source_of(values, offsets, channels);
  const py::gil_scoped_release free;
  return fit::draw_bank(o, source, thread_count(threads));
}

Floats features(const kernels::FeatureBank& bank, const Floats& values, const Integers& offsets,
                int threads) {
  const auto at = span_of(offsets);
  std::vector<kernels::BankSequence> sequences;
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    sequences.push_back({values.data() + static_cast<size_t>(at[i]) * bank.channels,
                         static_cast<size_t>(at[i + 1] - at[i])});
  }
  Floats out({sequences.size(), bank.features()});
  float* to = out.mutable_data();
  const py::gil_scoped_release free;
  kernels::bank_features(bank.view(), sequences, to, thread_count(threads));
  return out;
}

Floats predict(const fit::Fitted& model, const Floats& values, const Integers& offsets,
               int threads) {
  const fit::Source source = source_of(values, offsets, model.bank.channels);
  std::vector<float> y;
  {
    const py::gil_scoped_release free;
    y = fit::predict(model, source, thread_count(threads));
  }
  Floats out({source.count, model.outputs});
  std::copy(y.begin(), y.end(), out.mutable_data());
  return out;
}

py::dict report(const fit::Fitted& model) {
  const fit::Estimate& e = model.estimate;
  py::dict out;
  out["estimate"] = fit::estimate_name(e.kind);
  out["examples"] = e.examples;
  out["accuracy"] = e.accuracy.value;
  out["accuracy_error"] = e.accuracy.error;
  out["loss"] = e.loss.value;
  out["loss_error"] = e.loss.error;
  out["calibration"] = e.calibration;
  out["penalty"] = model.penalty;
  out["temperature"] = model.temperature;
  out["messages"] = model.messages;
  return out;
}

// For pickle: all numbers of a bank and a model.
py::tuple bank_state(const kernels::FeatureBank& b) {
  return py::make_tuple(b.channels, b.differences, b.taps, b.inputs, b.drive, b.theta, b.gamma_log,
                        b.thresholds);
}

kernels::FeatureBank bank_from(const py::tuple& t) {
  kernels::FeatureBank b;
  b.channels = t[0].cast<size_t>();
  b.differences = t[1].cast<bool>();
  b.taps = t[2].cast<size_t>();
  b.inputs = t[3].cast<std::vector<int32_t>>();
  b.drive = t[4].cast<std::vector<float>>();
  b.theta = t[5].cast<std::vector<float>>();
  b.gamma_log = t[6].cast<std::vector<float>>();
  b.thresholds = t[7].cast<std::vector<float>>();
  b.prepare();
  return b;
}

}  // namespace

void bind_fit(py::module_& m) {
  py::class_<kernels::FeatureBank>(m, "FeatureBank")
      .def_readonly("channels", &kernels::FeatureBank::channels)
      .def_property_readonly("features", &kernels::FeatureBank::features)
      .def("transform", &features, py::arg("values"), py::arg("offsets"), py::arg("threads"))
      .def(py::pickle(&bank_state, &bank_from));
  py::class_<fit::Fitted>(m, "Fitted")
      .def_property_readonly("channels", [](const fit::Fitted& f) { return f.bank.channels; })
      .def("predict", &predict, py::arg("values"), py::arg("offsets"), py::arg("threads"))
      .def("report", &report)
      .def(py::pickle(
          [](const fit::Fitted& f) {
            return py::make_tuple(bank_state(f.bank), f.outputs, f.weight, f.bias, f.penalty,
                                  f.temperature);
          },
          [](const py::tuple& t) {
            fit::Fitted f;
            f.bank = bank_from(t[0].cast<py::tuple>());
            f.outputs = t[1].cast<size_t>();
            f.weight = t[2].cast<std::vector<float>>();
            f.bias = t[3].cast<std::vector<float>>();
            f.penalty = t[4].cast<double>();
            f.temperature = t[5].cast<double>();
            return f;
          }));
  m.def("fit", &fit_arrays, py::arg("values"), py::arg("offsets"), py::arg("channels"),
        py::arg("outputs"), py::arg("classes"), py::arg("targets"), py::arg("groups"),
        py::arg("weights"), py::arg("states"), py::arg("seed"), py::arg("balance"),
        py::arg("threads"));
  m.def("draw_bank", &draw, py::arg("values"), py::arg("offsets"), py::arg("channels"),
        py::arg("states"), py::arg("seed"), py::arg("threads"));
}

}  // namespace rotrnn::python
