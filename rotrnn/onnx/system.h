#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rotrnn/onnx/graph.h"
#include "rotrnn/onnx/source.h"

namespace rotrnn {

/// Which graph: one step, some steps of a stream, or whole sequences.
enum class OnnxKind { step, chunk, sequence };

/// Their names, in the order of OnnxKind.
inline constexpr const char* kOnnxKinds[] = {"step", "chunk", "sequence"};

inline const char* name_of(OnnxKind kind) {
  return kOnnxKinds[static_cast<size_t>(kind)];
}

/// What all blocks of a graph share. Rows are [rows, …], the sequences of a time step together:
/// as many as sequences in a step, time by sequences otherwise.
struct OnnxFrame {
  OnnxKind kind;
  OnnxValue batch;        // [1]: how many sequences
  OnnxValue first, last;  // [rows, 1], true at the first step and at the last one; where needed
  OnnxValue inside;       // [rows, 1], true where a sequence has not ended; where needed

  bool step() const { return kind == OnnxKind::step; }

  /// [rows, sizes…] to [time, batch, sizes…] and back.
  OnnxValue by_time(OnnxGraph& g, const OnnxValue& rows, const std::vector<int64_t>& sizes) const;
  static OnnxValue by_row(OnnxGraph& g, const OnnxValue& x, const std::vector<int64_t>& sizes);
};

/// A linear map with its bias, x·weightᵀ + bias; `bias` may be rows, or "".
OnnxValue onnx_linear(OnnxGraph& g, const OnnxValue& x, const OnnxValue& weight,
                      const OnnxValue& bias);

/// What a system makes of rows u [rows, D]: its output, and its state afterwards (not in
/// OnnxKind::sequence).
struct OnnxSystem {
  OnnxValue y, state;
};

/// Numbers in the state of one block of a sequence.
int64_t onnx_state_size(const OnnxSource& source);

/// The diagonal system of block `at` ("blocks.0."), from its state [batch, 2S].
OnnxSystem onnx_diagonal(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                         const OnnxFrame& frame, const OnnxValue& u, const OnnxValue& state);

/// Channels of their own, from a state [batch, 2·D·N + (degree - 1)·D].
OnnxSystem onnx_channels(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                         const OnnxFrame& frame, const OnnxValue& u, const OnnxValue& state);

}  // namespace rotrnn
