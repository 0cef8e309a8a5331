#pragma once

#include <vector>

#include "rotrnn/onnx/graph.h"
#include "rotrnn/onnx/system.h"
#include "rotrnn/spec/frontend.h"
#include "rotrnn/spec/model_file.h"

namespace rotrnn {

/// A front end with its numbers; of patches there are none.
struct OnnxFrontend {
  FrontendOptions options;
  int64_t channels = 1;
  std::vector<float> theta, gamma_log, mean, deviation;

  /// Numbers in the state of one sequence between two tokens.
  int64_t state_size() const;
  /// Why there are no graphs with states: patches overlap or leave samples out. Empty: there are.
  std::string whole_only() const;
};

/// What a front end reads: scaled samples x [time, batch, channels], whole tokens of them.
struct OnnxSamples {
  OnnxValue x;
  OnnxValue state;    // [batch, state_size()]; "" without one
  OnnxValue lengths;  // [batch]: samples of each sequence, what is behind them is not used; or ""
};

/// That of a model.
OnnxFrontend onnx_frontend(const ModelFile& file);

/// Tokens of whole sequences of these lengths [batch].
OnnxValue onnx_token_lengths(OnnxGraph& g, const OnnxFrontend& frontend, const OnnxValue& lengths);

/// Rows [tokens by sequences, channels of a token], and the state afterwards.
OnnxSystem onnx_tokens(OnnxGraph& g, const OnnxFrontend& frontend, const OnnxFrame& frame,
                       const OnnxSamples& samples);

}  // namespace rotrnn
