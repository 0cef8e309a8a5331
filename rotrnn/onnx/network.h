#pragma once

#include "rotrnn/onnx/system.h"

namespace rotrnn {

/// The whole network as a graph (docs/deploy.md): inputs, encoder, blocks, pooling, head, states.
/// The model must stream unless it is OnnxKind::sequence.
OnnxGraph onnx_network(const OnnxSource& source, OnnxKind kind);

}  // namespace rotrnn
