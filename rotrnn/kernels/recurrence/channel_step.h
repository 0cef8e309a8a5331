#pragma once

#include <cstddef>

#include "rotrnn/base/arena.h"
#include "rotrnn/spec/description.h"

namespace rotrnn::kernels {

struct Table;
struct StepState;

/// The layer of a block whose channels do not meet, as a trained model has it: N complex states
/// for each of D channels.
///
///   w_t = u_t, or with products inside: u_t + Σ_{i=1..} product_i ⊙ Π_{j≤i} u_{t-j}
///   x_t = λ⊙x_{t-1} + p·Re Σ_n q_n x_{t-1,n} + b·w_t
///   y_t = Re Σ_n c_n x_{t,n}, with products outside: + Σ_i product_i ⊙ Π_{j≤i} u_{t-j}
///   bidirectional: + Re Σ_n c'_n x←_{t+1,n}, x← by the same recurrence from the end, driven by u
///
/// As in spec/description.h, where `liquid` are the products. Optional: c_reverse, p and q
/// (together), b (null: 1), liquid. D is the block's.
using ChannelStepLayer = ChannelStepFields<const float*>;

/// Such a layer, packed by groups of kChannels channels, for a few rows of streams and for whole
/// sequences. A state is [groups][2·N + orders][kChannels]: x (re and im of a state after each
/// other), then the last inputs, the latest first. It is aligned to a cache line and all zero at
/// the beginning.
class ChannelStepper {
 public:
  /// Takes the planes from `memory`.
  ChannelStepper(const ChannelStepLayer& layer, Arena& memory);

  size_t groups() const;
  bool bidirectional() const { return c_reverse_ != nullptr; }
  /// Floats of a state, a multiple of a cache line.
  size_t state_size() const { return groups() * group_state(); }
  /// Σ|x|² of all channels of a state.
  double state_square(const float* state) const;
  /// Floats that run() and sequence() need for so many rows; aligned as states are.
  size_t scratch(size_t rows) const;

  /// y [rows, D] from u [rows, D], forward in time. States and rows as StepBlock::run has them.
  void run(const float* u, size_t rows, const StepState* states, size_t state_count, float* y,
           float* scratch) const;

  /// The channels of one group of a whole sequence, in both directions if bidirectional. Works on
  /// tiles of `tile` rows; scratch(tile) and state_size() / groups() floats are needed.
  void sequence(size_t group, const float* u, size_t rows, size_t tile, float* y,
                float* scratch) const;
  size_t sequence_scratch(size_t tile) const { return scratch(tile) + group_state(); }

 private:
  size_t group_state() const;
  size_t width(size_t group) const;
  const float* pack(const float* re, const float* im, Arena& memory) const;
  void forward(size_t group, const float* u, size_t rows, float* y, float* state,
               float* scratch) const;
  void scan(size_t group, size_t rows, bool reverse, const float* u, float* y, float* state) const;
  void add_products(size_t group, const float* u, size_t rows, const float* line, float* to) const;

  const Table* simd_;
  size_t D_, N_, orders_;
  bool inside_;
  // Planes [groups][N][2][kChannels], zero beyond D; p is null without low rank and b.
  const float *lambda_, *c_, *c_reverse_ = nullptr, *p_ = nullptr, *q_ = nullptr, *b_ = nullptr;
  const float* products_ = nullptr;  // [groups][orders][kChannels]
};

}  // namespace rotrnn::kernels
