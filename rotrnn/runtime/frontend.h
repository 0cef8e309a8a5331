#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/frontend/patch.h"
#include "rotrnn/kernels/frontend/rotations.h"
#include "rotrnn/spec/frontend.h"

// The front end of an exported model, for streams and whole sequences. Internal.

namespace rotrnn::runtime {

/// Samples are those of the network: scaled, [count, channels].
class Frontend {
 public:
  /// None: every sample is a token, and nothing below is called.
  Frontend() = default;
  /// Options with all settings given. Numbers are copied to `memory`; of rotations alone.
  Frontend(const FrontendOptions& options, const kernels::RotationParameters& parameters,
           kernels::Arena& memory);

  bool used() const { return options_.used(); }
  const FrontendOptions& options() const { return options_; }
  /// Numbers of a token, and floats of the state of a stream.
  size_t outputs() const;
  size_t state_size() const;

  /// Takes samples up to the end of the next token, and writes it. Returns how many were taken;
  /// `complete`: whether a token was. A state begins with zeros and `waiting` = 0: samples of the
  /// token that is not complete, or, below 0, samples to leave out before it.
  size_t run(const float* x, size_t count, float* state, int32_t& waiting, float* token,
             bool& complete) const;

  /// The token of a sequence that has ended before its first was complete.
  void partial(const float* state, int32_t waiting, float* token) const;

  /// Tokens of packed sequences, with their offsets.
  void sequences(const std::vector<float>& values, const std::vector<int64_t>& offsets, int threads,
                 std::vector<float>& tokens, std::vector<int64_t>& token_offsets) const;

 private:
  size_t run_patch(const float* x, size_t count, float* state, int32_t& waiting, float* token,
                   bool& complete) const;

  FrontendOptions options_;
  std::optional<kernels::RotationBank> bank_;
  kernels::Patches patches_;
};

}  // namespace rotrnn::runtime
