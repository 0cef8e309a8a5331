#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/layers/setting_error.h"
#include "rotrnn/spec/description.h"
#include "rotrnn/spec/parameter.h"

namespace rotrnn {

/// The tensors of one layer: its parameters and float buffers, and its integers.
struct LayerValues {
  Views<float> tensors;
  Views<int64_t> integers;
};

/// Layers of one kind and the same options, to be mapped together.
struct MapRequest {
  const LayerOptions& options;
  std::span<const LayerValues> layers;
  int threads = 1;
};

/// What a map keeps for its adjoint; only the layer knows what it means.
using MapTrace = std::vector<double>;

/// The complex states that a sequence has in a layer, and which of them make one norm: `groups`
/// parts of equal size, times `scale`.
struct LayerStates {
  int64_t count = 0;  // 0: the layer trains as a convolution and shows none
  int64_t groups = 1;
  double scale = 1;
};

/// A kind of layer: all that the program knows of it. A new layer is its folder and a line of the
/// table in layers/layer_table.h.
struct LayerKind {
  const char* name;     // as in model.layer
  const char* summary;  // one line
  bool channels;        // every channel has states of its own: a Channel, else a Diagonal

  /// Throws SettingError; sizes are checked only of the layer in use.
  void (*check)(const LayerOptions&, bool sizes);
  /// The sizes in words, such as "state 256, 32 heads".
  std::string (*describe)(const LayerOptions&);

  /// Names, shapes and groups.
  TensorSpecs (*tensors)(const LayerOptions&);
  /// Draws the initial values: a pure function of (seed, stream).
  void (*draw)(const LayerOptions&, uint64_t seed, uint64_t stream, const LayerValues& out);
  /// Called before a batch whose longest sequence is this; may change the values, but not what the
  /// layer computes. Null for most.
  void (*prepare)(const LayerOptions&, const LayerValues& values, int64_t longest);

  /// Parameters to descriptions, in double; `out` has one entry for each layer.
  void (*map)(const MapRequest&, std::span<Description<double>> out, MapTrace& trace);
  /// The adjoint: adds to the gradients of the parameters, given those of the descriptions.
  void (*map_backward)(const MapRequest&, const MapTrace& trace,
                       std::span<const Description<double>> gradients,
                       std::span<const Views<double>> out);

  /// The trained layer as a stream runs it; std::invalid_argument when it has no such form. Without
  /// `outputs` what reads the states may be missing: for S4 it takes dense matrices.
  Recurrence (*recurrence)(const LayerOptions&, const LayerValues& values, bool outputs);
  LayerStates (*states)(const LayerOptions&);
};

}  // namespace rotrnn
