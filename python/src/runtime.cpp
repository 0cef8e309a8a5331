#include "python/src/runtime.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "rotrnn/runtime/score.h"
#include "rotrnn/runtime/stream.h"

// Arrays come as C-contiguous float32 or int32: rotrnn/stream.py sees to that. Errors are the
// runtime's own: std::invalid_argument is a ValueError, std::runtime_error a RuntimeError.

namespace py = pybind11;

namespace rotrnn::python {
namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Tokens = py::array_t<int32_t, py::array::c_style>;
using Offsets = py::array_t<int64_t, py::array::c_style>;

template <typename T>
std::span<const T> span_of(const py::array_t<T, py::array::c_style>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

Floats copy_of(std::span<const float> values) {
  return Floats(static_cast<py::ssize_t>(values.size()), values.data());
}

// A Python object holds an immutable model.
struct Model {
  std::shared_ptr<const runtime::Model> model;
};

struct Scorer {
  std::shared_ptr<const runtime::Model> model;
  runtime::Scorer scorer;
};

py::dict info_of(const Model& m) {
  const runtime::ModelInfo& i = m.model->info();
  constexpr const char* kPoolings[] = {"mean", "last", "none"};
  py::dict d;
  d["layer"] = i.layer;
  d["activation"] = i.activation;
  d["task"] = i.task;
  d["version"] = i.version;
  d["width"] = i.width;
  d["states"] = i.states;
  d["depth"] = i.depth;
  d["parameters"] = i.parameters;
  d["bidirectional"] = i.bidirectional;
  d["pooling"] = kPoolings[static_cast<size_t>(i.pooling)];
  d["tokens"] = i.tokens;
  d["inputs"] = i.inputs;
  d["text"] = i.text;
  d["rate"] = i.rate;
  d["channels"] = i.channels;
  d["max_length"] = i.max_length;
  d["frontend"] = i.frontend;
  d["window"] = i.window;
  d["hop"] = i.hop;
  d["classifies"] = i.classifies;
  d["outputs"] = i.outputs;
  d["classes"] = i.classes;
  d["values"] = i.values;
  d["horizon"] = i.horizon;
  d["per_step"] = i.per_step;
  d["pairs"] = i.towers == 2;
  return d;
}

// Pushes by `push(each)` and gives the logits after every step when they are asked for.
template <typename Push>
py::object with_each(runtime::Stream& s, size_t most, bool each, const Push& push) {
  const auto outputs = static_cast<size_t>(s.model().info().outputs);
  std::vector<float> room(each ? std::max<size_t>(most, 1) * outputs : 0);
  int64_t made = 0;
  {
    const py::gil_scoped_release free;
    made = push(std::span(room));
  }
  if (!each) return py::int_(made);
  Floats out({static_cast<py::ssize_t>(made), static_cast<py::ssize_t>(outputs)});
  std::copy_n(room.data(), static_cast<size_t>(out.size()), out.mutable_data());
  return out;
}

void bind_stream(py::module_& m) {
  using runtime::Stream;
  py::class_<Stream>(m, "Stream")
      .def(py::init([](const Model& model, size_t rows) { return Stream(model.model, rows); }))
      .def("push",
           [](Stream& s, const Floats& values, bool each) {
             return with_each(s, static_cast<size_t>(values.size()), each,
                              [&](auto room) { return s.push(span_of(values), room); });
           })
      .def("push_tokens",
           [](Stream& s, const Tokens& tokens, bool each) {
             return with_each(s, static_cast<size_t>(tokens.size()), each,
                              [&](auto room) { return s.push_tokens(span_of(tokens), room); });
           })
      .def("push_text",
           [](Stream& s, const std::string& text, bool each) {
             return with_each(s, text.size(), each,
                              [&](auto room) { return s.push_text(text, room); });
           })
      .def("end", &Stream::end)
      .def("reset", &Stream::reset)
      .def("logits", [](Stream& s) { return copy_of(s.logits()); })
      .def("answer", [](Stream& s) { return copy_of(s.answer()); })
      .def_property_readonly("steps", &Stream::steps)
      .def_property_readonly("memory", &Stream::memory)
      .def("save",
           [](const Stream& s) {
             std::string state(s.state_size(), '\0');
             s.save(std::as_writable_bytes(std::span(state)));
             return py::bytes(state);
           })
      .def("restore",
           [](Stream& s, const py::bytes& state) {
             const std::string_view view = state;
             s.restore(std::as_bytes(std::span(view)));
           })
      .def_static("push_each", [](const std::vector<Stream*>& streams, const Floats& values) {
        const py::gil_scoped_release free;
        Stream::push_each(streams, span_of(values));
      });
}

}  // namespace

void bind_runtime(py::module_& m) {
  py::class_<Model>(m, "Model")
      .def(py::init([](const std::string& file) { return Model{runtime::Model::load(file)}; }))
      .def("info", info_of)
      .def("tokens",
           [](const Model& m, const std::string& text) {
             const auto tokens = m.model->tokens(text);
             return Tokens(static_cast<py::ssize_t>(tokens.size()), tokens.data());
           })
      .def("answer", [](const Model& m, Floats rows) {
        const auto outputs = static_cast<size_t>(m.model->info().outputs);
        for (size_t i = 0; i + outputs <= static_cast<size_t>(rows.size()); i += outputs) {
          m.model->answer({rows.mutable_data() + i, outputs});
        }
      });
  py::class_<Scorer>(m, "Scorer")
      .def(py::init([](const Model& model, int threads) {
        return std::unique_ptr<Scorer>(
            new Scorer{model.model, runtime::Scorer(model.model, threads)});
      }))
      .def("score",
           [](Scorer& s, const Floats& values, const Offsets& offsets) {
             std::vector<float> logits;
             {
               const py::gil_scoped_release free;
               logits = s.scorer.score(span_of(values), span_of(offsets));
             }
             return copy_of(logits);
           })
      .def("score_tokens", [](Scorer& s, const Tokens& tokens, const Offsets& offsets) {
        std::vector<float> logits;
        {
          const py::gil_scoped_release free;
          logits = s.scorer.score_tokens(span_of(tokens), span_of(offsets));
        }
        return copy_of(logits);
      });
  bind_stream(m);
}

}  // namespace rotrnn::python
