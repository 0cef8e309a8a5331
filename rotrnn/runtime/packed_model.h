#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/block.h"
#include "rotrnn/kernels/block/step.h"
#include "rotrnn/kernels/features/feature_bank.h"
#include "rotrnn/kernels/simd/simd.h"
#include "rotrnn/runtime/frontend.h"
#include "rotrnn/runtime/model.h"
#include "rotrnn/spec/model_file.h"

// What Model, Stream and Scorer share. Internal.

namespace rotrnn::runtime {

/// A linear map, packed for the kernels.
struct Linear {
  size_t inputs = 0, outputs = 0;
  const float *packed = nullptr, *bias = nullptr;

  /// out [rows, outputs] = x [rows, inputs]·weightᵀ + bias.
  void run(const kernels::Table& simd, const float* x, size_t rows, float* out) const;
};

/// The weights of a model, checked and laid out for the kernels, all in one piece of memory.
struct PackedModel {
  ModelFile file;  // whose numbers are used where they are
  ModelInfo info;
  Preprocessing preprocessing;
  uint64_t fingerprint = 0;  // of the whole file: a state belongs to it
  const kernels::Table* simd = nullptr;
  kernels::Arena memory;
  kernels::BlockConfig config;
  std::vector<kernels::BlockParameters> blocks;  // whole sequences
  std::vector<kernels::StepBlock> steps;         // streams; empty if diagonal and bidirectional
  Frontend frontend;
  // Encoder: rows of an embedding, or one row per channel of a token and the bias.
  const float *encoder = nullptr, *encoder_bias = nullptr;
  Linear hidden, head;                           // hidden: of pairs
  std::optional<kernels::FeatureBank> features;  // in place of encoder and blocks

  size_t D() const { return config.D; }
  bool channels() const { return !steps.empty() && steps[0].channels() != nullptr; }
  size_t state_size() const { return steps[0].state_size(); }  // of one block of a stream
  size_t inputs() const { return static_cast<size_t>(info.inputs); }
  size_t token_inputs() const { return frontend.used() ? frontend.outputs() : inputs(); }
  size_t outputs() const { return static_cast<size_t>(info.outputs); }

  /// Why it takes whole sequences only; empty when it can stream.
  std::string whole_only() const;
  /// x [D] from a token, which is within the vocabulary, or from the values of one.
  void encode(int32_t token, float* x) const;
  void encode(const float* values, float* x) const;
  /// std::invalid_argument unless all of these are within the vocabulary.
  void check_tokens(std::span<const int32_t> tokens) const;
  /// std::invalid_argument unless these are finite and whole steps.
  void check_values(std::span<const float> values) const;
};

}  // namespace rotrnn::runtime
