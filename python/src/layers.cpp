#include "python/src/layers.h"

#include <pybind11/stl.h>

#include <cstdint>

#include "python/src/address.h"
#include "python/src/system.h"
#include "python/src/workspace.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace py = pybind11;

namespace rotrnn::python {
namespace {

using kernels::BlockConfig;

// Never destroyed: a tensor may hold a lease when the process ends.
Shelf<Workspace>& workspaces() {
  static auto& shelf = *new Shelf<Workspace>;
  return shelf;
}

Shelf<kernels::Arena>& scratches() {
  static auto& shelf = *new Shelf<kernels::Arena>;
  return shelf;
}

/// A workspace from its forward call to the end of its backward call. Python reads its number
/// as a buffer, so that a tensor can own it: autograd frees that tensor when it is done.
struct Lease {
  Lease(int64_t number, size_t bytes) : workspace(workspaces().take(bytes)), number(number) {}
  ~Lease() { workspaces().put(std::move(workspace)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::unique_ptr<Workspace> workspace;
  int64_t number;
};

/// An arena for the length of one call.
struct Scratch {
  Scratch() : arena(scratches().take(SIZE_MAX)) {}
  ~Scratch() { scratches().put(std::move(arena)); }
  std::unique_ptr<kernels::Arena> arena;
};

struct LayerShape {
  size_t width, states;
  bool bidirectional;
  int threads;
};

BlockConfig layer_config(const LayerShape& shape, kernels::Keep keep) {
  BlockConfig config = kernels::bare_layer(shape.width, shape.states, shape.bidirectional);
  config.threads = shape.threads;
  config.keep = keep;
  return config;
}

kernels::BlockParameters parameters_of(const SystemAddresses& system) {
  kernels::BlockParameters parameters;
  static_cast<DiagonalFields<const float*>&>(parameters.layer) = system_at(system, in);
  return parameters;
}

/// A packed batch: offsets [count + 1], u [n, width], and the initial states of both directions.
struct Batch {
  Address offsets;
  size_t count;
  Address u, initial, initial_reverse;

  kernels::PackedSequences sequences() const {
    return {reinterpret_cast<const int64_t*>(offsets), count};
  }
  kernels::BlockInput input() const {
    kernels::BlockInput block;
    block.x = in(u), block.initial = in(initial), block.initial_reverse = in(initial_reverse);
    return block;
  }
};

/// y, final and final_reverse are written; what backward needs stays in the lease, if there is one.
void forward(Lease* lease, const LayerShape& shape, const SystemAddresses& system,
             const Batch& batch, Address y, Address final, Address final_reverse) {
  const auto keep = lease != nullptr ? kernels::Keep::all : kernels::Keep::nothing;
  const BlockConfig config = layer_config(shape, keep);
  const kernels::PackedSequences sequences = batch.sequences();
  Scratch scratch, plain;
  kernels::Arena& arena = lease != nullptr ? lease->workspace->arena : *plain.arena;
  arena.reset();
  kernels::BlockSaved saved = block_save(config, sequences, arena);
  kernels::BlockOutput output;
  output.out = out(y), output.final = out(final), output.final_reverse = out(final_reverse);
  block_forward(config, sequences, parameters_of(system), batch.input(), output, saved,
                *scratch.arena);
  if (lease != nullptr) lease->workspace->saved = saved;
}

/// Writes the gradients of u, of the system, and of both initial states.
void backward(Lease& lease, const LayerShape& shape, const SystemAddresses& system,
              const Batch& batch, Address dy, Address dfinal, Address dfinal_reverse, Address du,
              const SystemAddresses& dsystem, Address dinitial, Address dinitial_reverse) {
  const BlockConfig config = layer_config(shape, kernels::Keep::all);
  kernels::OutputGradient gradient;
  gradient.value = in(dy), gradient.final = in(dfinal), gradient.final_reverse = in(dfinal_reverse);
  kernels::BlockGradients to;
  to.x = out(du), to.layer = system_at(dsystem, out);
  to.initial = out(dinitial), to.initial_reverse = out(dinitial_reverse);
  Scratch scratch;
  block_backward(config, batch.sequences(), parameters_of(system), batch.input(),
                 lease.workspace->saved, gradient, to, *scratch.arena);
}

}  // namespace

void bind_layers(py::module_& m) {
  using Free = py::call_guard<py::gil_scoped_release>;
  py::class_<LayerShape>(m, "Shape",
                         "Sizes of a layer: width D, complex states S, both directions?")
      .def(py::init<size_t, size_t, bool, int>(), py::arg("width"), py::arg("states"),
           py::arg("bidirectional"), py::arg("threads"));
  py::class_<Batch>(m, "Batch", "A packed batch; addresses, 0 where there is none.")
      .def(py::init<Address, size_t, Address, Address, Address>(), py::arg("offsets"),
           py::arg("count"), py::arg("u"), py::arg("initial"), py::arg("initial_reverse"));
  py::class_<Lease>(m, "Lease", py::buffer_protocol(),
                    "Memory that a forward call fills for its backward call; reused when freed.")
      .def(py::init<int64_t, size_t>(), py::arg("number"), py::arg("bytes"))
      .def_buffer([](Lease& lease) { return py::buffer_info(&lease.number, 1); });
  m.def("forward", &forward, Free(), py::arg("lease").none(true), py::arg("shape"),
        py::arg("system"), py::arg("batch"), py::arg("y"), py::arg("final"),
        py::arg("final_reverse"));
  m.def("backward", &backward, Free(), py::arg("lease"), py::arg("shape"), py::arg("system"),
        py::arg("batch"), py::arg("dy"), py::arg("dfinal"), py::arg("dfinal_reverse"),
        py::arg("du"), py::arg("dsystem"), py::arg("dinitial"), py::arg("dinitial_reverse"));
  m.def(
      "release_memory", [] { return workspaces().clear() + scratches().clear(); },
      "Gives back the memory that is kept for the next step; how many bytes that were.");
  m.def("available_threads", &kernels::available_threads, "CPUs that this process may run on.");
  m.def(
      "simd", [] { return kernels::table().name; }, "The instruction set in use.");
}

}  // namespace rotrnn::python
