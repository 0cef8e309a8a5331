#include "rotrnn/runtime/frontend.h"

#include <algorithm>

namespace rotrnn::runtime {

Frontend::Frontend(const FrontendOptions& options, const kernels::RotationParameters& parameters,
                   kernels::Arena& memory)
    : options_(options),
      patches_{parameters.channels, static_cast<size_t>(options.size),
               static_cast<size_t>(options.stride)} {
  if (options.kind == FrontendKind::rotations) bank_.emplace(parameters, memory);
}

size_t Frontend::outputs() const {
  return bank_ ? bank_->outputs() : patches_.outputs();
}

size_t Frontend::state_size() const {
  if (bank_) return bank_->state_size();
  constexpr size_t kLine = 16;
  return (patches_.outputs() + kLine - 1) / kLine * kLine;
}

size_t Frontend::run(const float* x, size_t count, float* state, int32_t& waiting, float* token,
                     bool& complete) const {
  if (!bank_) return run_patch(x, count, state, waiting, token, complete);
  kernels::RotationState rotations{state, static_cast<size_t>(waiting)};
  const size_t taken = std::min(count, bank_->hop() - rotations.count);
  complete = bank_->run(x, taken, rotations, token) > 0;
  waiting = static_cast<int32_t>(rotations.count);
  return taken;
}

// The state is the samples of the next patch so far.
size_t Frontend::run_patch(const float* x, size_t count, float* state, int32_t& waiting,
                           float* token, bool& complete) const {
  const size_t C = patches_.channels, size = patches_.size, stride = patches_.stride;
  size_t taken = 0;
  if (waiting < 0) {
    taken = std::min(count, static_cast<size_t>(-static_cast<int64_t>(waiting)));
    waiting += static_cast<int32_t>(taken);
  }
  complete = false;
  if (waiting < 0 || taken == count) return taken;
  const auto have = static_cast<size_t>(waiting);
  const size_t more = std::min(count - taken, size - have);
  std::copy_n(x + taken * C, more * C, state + have * C);
  taken += more;
  waiting += static_cast<int32_t>(more);
  if (static_cast<size_t>(waiting) < size) return taken;
  complete = true;
  std::copy_n(state, size * C, token);
  if (stride < size) std::copy(state + stride * C, state + size * C, state);
  waiting = static_cast<int32_t>(static_cast<int64_t>(size) - static_cast<int64_t>(stride));
  return taken;
}

void Frontend::partial(const float* state, int32_t waiting, float* token) const {
  const auto have = static_cast<size_t>(std::max(waiting, 0));
  if (bank_) {
    bank_->partial({const_cast<float*>(state), have}, token);
    return;
  }
  const size_t filled = have * patches_.channels;
  std::copy_n(state, filled, token);
  std::fill_n(token + filled, outputs() - filled, 0.0f);
}

void Frontend::sequences(const std::vector<float>& values, const std::vector<int64_t>& offsets,
                         int threads, std::vector<float>& tokens,
                         std::vector<int64_t>& token_offsets) const {
  const auto count = std::ssize(offsets) - 1;
  frontend_offsets(options_, offsets.data(), count, token_offsets);
  tokens.resize(static_cast<size_t>(token_offsets.back()) * outputs());
  const kernels::PackedSequences sequences{offsets.data(), static_cast<size_t>(count)};
  if (bank_) {
    kernels::rotations_forward(*bank_, sequences, token_offsets.data(), values.data(),
                               tokens.data(), nullptr, threads);
  } else {
    kernels::patches_forward(patches_, sequences, token_offsets.data(), values.data(),
                             tokens.data(), threads);
  }
}

}  // namespace rotrnn::runtime
