#include "rotrnn/kernels/block/step.h"

#include <algorithm>
#include <cmath>

#include "rotrnn/kernels/block/block_common.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

const float* pack_weight(const float* weight, size_t inputs, size_t outputs, Arena& memory) {
  const Table& simd = table();
  const size_t panels = (outputs + simd.panel_width - 1) / simd.panel_width;
  auto* packed = memory.take<float>(inputs * panels * simd.panel_width);
  simd.pack(packed, weight, inputs, outputs, 1, inputs);
  return packed;
}

StepBlock::StepBlock(const BlockConfig& config, const BlockParameters& parameters, Arena& memory)
    : simd_(&table()), config_(config), parameters_(parameters) {
  const size_t D = config.D, S2 = 2 * config.S;
  W_ = pack_weight(parameters.layer.W, D, S2, memory);
  V_ = pack_weight(parameters.layer.V, S2, D, memory);
  pack_gates(memory);
}

StepBlock::StepBlock(const BlockConfig& config, const BlockParameters& parameters,
                     const ChannelStepLayer& channels, Arena& memory)
    : simd_(&table()),
      config_(config),
      parameters_(parameters),
      channels_(std::in_place, channels, memory) {
  config_.S = 0;
  pack_gates(memory);
}

void StepBlock::pack_gates(Arena& memory) {
  const size_t D = config_.D, G = glu_width(config_);
  if (G == 0) return;
  if (!has_value(config_.activation)) {
    glu_ = pack_weight(parameters_.gate_weight, D, D, memory);
    return;
  }
  std::vector<float> both(G * D);
  std::copy_n(parameters_.value_weight, D * D, both.data());
  std::copy_n(parameters_.gate_weight, D * D, both.data() + D * D);
  glu_ = pack_weight(both.data(), D, G, memory);
}

size_t StepBlock::state_size() const {
  return channels_ ? channels_->state_size() : 2 * config_.S;
}

float StepBlock::state_norm(const float* state) const {
  double square = 0;
  if (channels_) {
    square = channels_->state_square(state);
  } else {
    for (size_t i = 0; i < 2 * config_.S; ++i) square += static_cast<double>(state[i]) * state[i];
  }
  return static_cast<float>(std::sqrt(square));
}

size_t StepBlock::scratch(size_t rows) const {
  return rows * (3 * config_.D + 2 * config_.S + glu_width(config_)) +
         (channels_ ? channels_->scratch(rows) : 0);
}

float* StepBlock::product(const float* a, size_t K, const float* packed, size_t N,
                          const float* bias, size_t rows, float* out) const {
  if (rows == 1) {
    simd_->multiply_row(out, a, packed, K, N, bias);
    return out;
  }
  simd_->multiply(out, N, a, K, packed, rows, K, N, false);
  if (bias != nullptr) simd_->add_rows(out, N, bias, rows, N);
  return out;
}

void StepBlock::scan(float* v, size_t rows, const StepState* states, size_t state_count) const {
  const DiagonalLayer& s = parameters_.layer;
  const size_t S = config_.S;
  const size_t rows_each = state_count == 1 ? rows : 1;
  for (size_t i = 0; i < state_count; ++i, v += 2 * S) {
    const auto [state, fresh] = states[i];
    if (fresh && s.start_re != nullptr) {
      for (size_t k = 0; k < S; ++k) {
        state[k] = s.start_re[k] * v[k] - s.start_im[k] * v[S + k];
        state[S + k] = s.start_re[k] * v[S + k] + s.start_im[k] * v[k];
      }
    }
    simd_->scan({v, static_cast<ptrdiff_t>(2 * S)}, rows_each, S, {s.lambda_re, s.lambda_im, 0},
                state);
  }
}

void StepBlock::norm(const float* x, size_t rows, float* out) const {
  const size_t D = config_.D;
  if (config_.norm == Norm::batch) {
    simd_->affine(x, D, parameters_.norm_weight, parameters_.norm_bias, out, D, rows, D);
  } else {
    simd_->layer_norm(x, D, parameters_.norm_weight, parameters_.norm_bias,
                      static_cast<float>(config_.eps), out, D, rows, D);
  }
}

const float* StepBlock::branch_input(const float* x, size_t rows, float* normed) const {
  if (!norms_input()) return x;
  norm(x, rows, normed);
  return normed;
}

void StepBlock::finish(float* x, const float* u, float* y, size_t rows, float* scratch) const {
  const DiagonalLayer& layer = parameters_.layer;
  const size_t D = config_.D, G = glu_width(config_);
  float* const h = scratch;
  float* const g = h + rows * D;
  const auto preactivate = simd_->preactivate[curve(config_.activation)];
  preactivate(y, D, u, D, layer.D, layer.e, nullptr, h, D, rows, D);
  if (G == 0) {
    simd_->residual(h, D, x, D, x, D, rows, D, nullptr);
  } else {
    product(h, D, glu_, G, nullptr, rows, g);
    const bool full = has_value(config_.activation);
    float* const q = full ? g : gated(config_.activation) == Gated::hidden ? h : y;
    simd_->gate(q, full ? G : D, full ? parameters_.value_bias : nullptr, full ? g + D : g, G,
                parameters_.gate_bias, nullptr, x, D, x, D, rows, D, nullptr);
  }
  if (config_.norm != Norm::none && !config_.prenorm) norm(x, rows, x);
}

void StepBlock::run(float* x, size_t rows, const StepState* states, size_t state_count,
                    float* scratch) const {
  const size_t D = config_.D, S2 = 2 * config_.S;
  // First what has to be aligned.
  float* const normed = scratch + (channels_ ? channels_->scratch(rows) : 0);
  float* const y = normed + rows * D;
  float* const v = y + rows * D;
  const float* const u = branch_input(x, rows, normed);
  if (channels_) {
    channels_->run(u, rows, states, state_count, y, scratch);
  } else {
    product(u, D, W_, S2, parameters_.layer.b, rows, v);
    scan(v, rows, states, state_count);
    product(v, S2, V_, D, nullptr, rows, y);
  }
  finish(x, u, y, rows, v + rows * S2);
}

}  // namespace rotrnn::kernels
