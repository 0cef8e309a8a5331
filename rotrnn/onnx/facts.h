#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rotrnn/onnx/system.h"

namespace rotrnn {

/// What users of the file alone need to know, as its metadata: text, numbers, and
/// lists as JSON.
std::vector<std::pair<std::string, std::string>> onnx_facts(const OnnxSource& source,
                                                            OnnxKind kind);

/// How to use the graph, in a few sentences.
std::string onnx_usage(const OnnxSource& source, OnnxKind kind);

}  // namespace rotrnn
