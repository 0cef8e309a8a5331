// The bank of rotations (features/bank.h has the equations). A vector of states stays in registers
// along time: its state, its parameters, K counts and a maximum, 19 vectors with two taps, so that
// AVX-512 holds them all. The chain from z to z is two multiply-adds, and what is counted fills the
// time between: one group alone keeps the ports busy.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

using BankFloats = hn::CappedTag<float, kBankStates>;
using BankIntegers = hn::Rebind<int32_t, BankFloats>;

/// What a walk is for.
enum class BankTask { count, forget, values };

/// One vector of states over the rows of a tile. `at`: its first state, in the bank.
template <BankTask kTask, size_t kTaps>
HWY_INLINE void bank_vector(const BankTile& tile, const BankMemory& memory, size_t group,
                            size_t lane, float keep, float* values) {
  using V = hn::Vec<BankFloats>;
  using I = hn::Vec<BankIntegers>;
  const BankFloats d;
  const BankIntegers integers;
  constexpr bool kCounts = kTask == BankTask::count, kShares = kTask == BankTask::forget;
  const size_t at = group * kBankStates + lane;
  const size_t own = (group - memory.first) * kBankStates + lane, plane = memory.plane;
  const int32_t* inputs = tile.inputs + group * kTaps;
  const float* w = tile.weights + group * kTaps * 2 * kBankStates + lane;
  V wr[kTaps], wi[kTaps], threshold[kBankThresholds], share[kBankThresholds];
  I count[kBankThresholds];
  const float* u[kTaps];
#pragma GCC unroll 4
  for (size_t r = 0; r < kTaps; ++r) {
    wr[r] = hn::LoadU(d, w + 2 * r * kBankStates);
    wi[r] = hn::LoadU(d, w + (2 * r + 1) * kBankStates);
    u[r] = tile.u + inputs[r];
  }
  const V lr = hn::LoadU(d, tile.lambda + at), li = hn::LoadU(d, tile.lambda + tile.states + at);
  V re = hn::LoadU(d, memory.z + own), im = hn::LoadU(d, memory.z + plane + own);
  V most = hn::Zero(d);
  if constexpr (kTask != BankTask::values) most = hn::LoadU(d, memory.most + own);
#pragma GCC unroll 8
  for (size_t k = 0; k < kBankThresholds; ++k) {
    if constexpr (kTask != BankTask::values) {
      threshold[k] = hn::LoadU(d, tile.thresholds + k * tile.states + at);
    }
    if constexpr (kCounts) count[k] = hn::LoadU(integers, memory.counts + k * plane + own);
    if constexpr (kShares) share[k] = hn::LoadU(d, memory.shares + k * plane + own);
  }
  const V kept = hn::Set(d, keep), fresh = hn::Set(d, 1.0f - keep);
  const I one = hn::Set(integers, 1);
  for (size_t t = 0; t < tile.rows; ++t) {
    V vr = hn::Mul(wr[0], hn::Set(d, u[0][t * tile.ld]));
    V vi = hn::Mul(wi[0], hn::Set(d, u[0][t * tile.ld]));
#pragma GCC unroll 4
    for (size_t r = 1; r < kTaps; ++r) {
      const V x = hn::Set(d, u[r][t * tile.ld]);
      vr = hn::MulAdd(wr[r], x, vr);
      vi = hn::MulAdd(wi[r], x, vi);
    }
    const V next = hn::MulAdd(lr, re, hn::NegMulAdd(li, im, vr));
    im = hn::MulAdd(lr, im, hn::MulAdd(li, re, vi));
    re = next;
    if constexpr (kTask == BankTask::values) {
      hn::StoreU(re, d, values + t * plane + own);
    } else {
      // The maximum of a stream without end goes down to what there is now, as the shares do.
      if constexpr (kShares) most = hn::MulAdd(fresh, hn::Sub(re, most), most);
      most = hn::Max(most, re);
#pragma GCC unroll 8
      for (size_t k = 0; k < kBankThresholds; ++k) {
        const auto above = hn::Gt(re, threshold[k]);
        if constexpr (kShares) {
          share[k] = hn::MulAdd(kept, share[k], hn::IfThenElseZero(above, fresh));
        } else if constexpr (HWY_MAX_BYTES == 64) {  // one masked addition
          const auto mask = hn::RebindMask(integers, above);
          count[k] = hn::IfThenElse(mask, hn::Add(count[k], one), count[k]);
        } else {  // what is true is -1
          count[k] = hn::Sub(count[k], hn::BitCast(integers, hn::VecFromMask(d, above)));
        }
      }
    }
  }
  hn::StoreU(re, d, memory.z + own);
  hn::StoreU(im, d, memory.z + plane + own);
  if constexpr (kTask != BankTask::values) hn::StoreU(most, d, memory.most + own);
#pragma GCC unroll 8
  for (size_t k = 0; k < kBankThresholds; ++k) {
    if constexpr (kCounts) hn::StoreU(count[k], integers, memory.counts + k * plane + own);
    if constexpr (kShares) hn::StoreU(share[k], d, memory.shares + k * plane + own);
  }
}

template <BankTask kTask, size_t kTaps>
void bank_groups(const BankTile& tile, const BankMemory& memory, float keep, float* values) {
  for (size_t group = tile.first; group < tile.last; ++group) {
    for (size_t lane = 0; lane < kBankStates; lane += hn::Lanes(BankFloats())) {
      bank_vector<kTask, kTaps>(tile, memory, group, lane, keep, values);
    }
  }
}

template <BankTask kTask>
void bank_walk(const BankTile& tile, const BankMemory& memory, float keep, float* values) {
  if (tile.taps == 1) return bank_groups<kTask, 1>(tile, memory, keep, values);
  if (tile.taps == 2) return bank_groups<kTask, 2>(tile, memory, keep, values);
  bank_groups<kTask, 3>(tile, memory, keep, values);
}

inline void bank_count(const BankTile& tile, const BankMemory& memory) {
  bank_walk<BankTask::count>(tile, memory, 1, nullptr);
}

inline void bank_forget(const BankTile& tile, const BankMemory& memory, float keep) {
  bank_walk<BankTask::forget>(tile, memory, keep, nullptr);
}

inline void bank_values(const BankTile& tile, const BankMemory& memory, float* values) {
  bank_walk<BankTask::values>(tile, memory, 1, values);
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
