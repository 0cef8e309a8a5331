#include "rotrnn/network/reference/frontend_twin.h"

#include <algorithm>

#include "rotrnn/kernels/oracle/rotations_reference.h"

namespace rotrnn {
namespace {

namespace twins = kernels::reference;

template <class T>
std::vector<T> copy_of(std::span<const float> from) {
  return {from.begin(), from.end()};
}

template <class T>
twins::RotationValues<T> rotations_of(const FrontendOptions& o, size_t channels, const Weights& w,
                                      std::span<const float> x) {
  return {channels,
          static_cast<size_t>(o.bands),
          static_cast<size_t>(o.hop),
          copy_of<T>(w.find("frontend.theta")),
          copy_of<T>(w.find("frontend.gamma_log")),
          copy_of<T>(w.find("frontend.mean")),
          copy_of<T>(w.find("frontend.deviation")),
          copy_of<T>(x)};
}

kernels::PackedSequences sequences_of(const PackedInput& batch) {
  return {batch.offsets.data(), batch.sequences()};
}

// f(number of the samples, number of the tokens) for every number that a patch takes.
template <class F>
void for_patches(const FrontendOptions& o, const PackedInput& batch,
                 const std::vector<int64_t>& tokens, size_t channels, const F& f) {
  for (size_t i = 0; i < batch.sequences(); ++i) {
    for (int64_t j = tokens[i]; j < tokens[i + 1]; ++j) {
      const int64_t begin = batch.offsets[i] + (j - tokens[i]) * o.stride;
      for (int64_t k = 0; k < o.size && begin + k < batch.offsets[i + 1]; ++k) {
        for (size_t c = 0; c < channels; ++c) {
          f(static_cast<size_t>(begin + k) * channels + c,
            static_cast<size_t>(j * o.size + k) * channels + c);
        }
      }
    }
  }
}

}  // namespace

template <class T>
void FrontendTwin<T>::forward(const FrontendOptions& options, size_t channels,
                              const Weights& weights, const PackedInput& batch) {
  options_ = options;
  batch_ = batch;
  inputs_ = channels;
  channels_ = static_cast<size_t>(frontend_channels(options, static_cast<int64_t>(channels)));
  frontend_offsets(options, batch.offsets.data(), std::ssize(batch.offsets) - 1, offsets_);
  switch (options.kind) {
    case FrontendKind::none:
      values_ = copy_of<T>(batch.values);
      return;
    case FrontendKind::patch:
      values_.assign(static_cast<size_t>(offsets_.back()) * channels_, 0);
      for_patches(options, batch, offsets_, channels, [&](size_t from, size_t to) {
        values_[to] = static_cast<T>(batch.values[from]);
      });
      return;
    case FrontendKind::rotations:
      values_ = twins::rotations_forward(rotations_of<T>(options, channels, weights, batch.values),
                                         sequences_of(batch), offsets_.data());
  }
}

template <class T>
std::vector<T> FrontendTwin<T>::backward(const Weights& weights, const Values& dtokens,
                                         Values& out) const {
  if (options_.kind == FrontendKind::none) return dtokens;
  if (options_.kind == FrontendKind::patch) {
    Values dx(batch_.values.size());
    for_patches(options_, batch_, offsets_, inputs_,
                [&](size_t from, size_t to) { dx[from] += dtokens[to]; });
    return dx;
  }
  const auto g =
      twins::rotations_backward(rotations_of<T>(options_, inputs_, weights, batch_.values),
                                sequences_of(batch_), offsets_.data(), dtokens);
  const auto add = [&](const char* name, const Values& values) {
    const auto* p = weights.layout().find(name);
    if (p == nullptr) return;
    for (size_t i = 0; i < p->count; ++i) out[p->offset + i] += values[i];
  };
  add("frontend.theta", g.theta);
  add("frontend.gamma_log", g.gamma_log);
  return g.x;
}

template class FrontendTwin<float>;
template class FrontendTwin<double>;

}  // namespace rotrnn
