#pragma once

#include <string>

#include "rotrnn/onnx/source.h"

namespace rotrnn {

/// The map of `name`.weight and `name`.bias.
OnnxValue onnx_map(OnnxGraph& g, const OnnxSource& source, const std::string& name,
                   const OnnxValue& x);

/// The norm of block `at` ("blocks.0."), as the model has it.
OnnxValue onnx_norm(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                    const OnnxValue& x);

/// GELU in its tanh form.
OnnxValue onnx_gelu(OnnxGraph& g, const OnnxValue& y);

/// The activation of block `at`.
OnnxValue onnx_activation(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                          const OnnxValue& y);

}  // namespace rotrnn
