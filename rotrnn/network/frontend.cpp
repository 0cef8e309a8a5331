#include "rotrnn/network/frontend.h"

#include <algorithm>
#include <stdexcept>

#include "rotrnn/kernels/frontend/patch.h"
#include "rotrnn/kernels/frontend/rotations.h"

namespace rotrnn {
namespace {

constexpr const char* kTheta = "frontend.theta";
constexpr const char* kGamma = "frontend.gamma_log";
constexpr const char* kMean = "frontend.mean";
constexpr const char* kDeviation = "frontend.deviation";

kernels::RotationParameters rotations_of(const Frontend::Input& in) {
  kernels::RotationParameters p;
  p.channels = in.channels;
  p.bands = static_cast<size_t>(in.options.bands);
  p.hop = static_cast<size_t>(in.options.hop);
  p.theta = in.weights.find(kTheta).data();
  p.gamma_log = in.weights.find(kGamma).data();
  if (in.raw) return p;
  p.mean = in.weights.find(kMean).data();
  p.deviation = in.weights.find(kDeviation).data();
  return p;
}

kernels::Patches patches_of(const Frontend::Input& in) {
  return {in.channels, static_cast<size_t>(in.options.size),
          static_cast<size_t>(in.options.stride)};
}

kernels::PackedSequences sequences_of(const Frontend::Input& in) {
  return {in.batch.offsets.data(), in.batch.sequences()};
}

}  // namespace

FrontendOptions frontend_of(const ModelOptions& options, const DataShape& shape) {
  if (!options.frontend.used()) return options.frontend;
  if (shape.input == InputKind::tokens) {
    throw std::invalid_argument(
        "frontend: it is for numbers, and this task has texts or token numbers; set "
        "frontend.kind = \"none\"");
  }
  if (shape.per_token || options.pooling == Pooling::none) {
    throw std::invalid_argument(
        "frontend: several samples become one token, so there cannot be an output for every step; "
        "set frontend.kind = \"none\"");
  }
  return resolve_frontend(options.frontend, shape.rate);
}

void add_frontend_tensors(const FrontendOptions& o, int64_t channels, TensorSpecs& out) {
  if (o.kind != FrontendKind::rotations) return;
  for (const char* name : {kTheta, kGamma}) {
    if (o.learn) {
      out.parameters.push_back({name, {o.bands}, ParameterGroup::recurrent});
    } else {
      out.buffers.push_back({name, {o.bands}});
    }
  }
  out.buffers.push_back({kMean, {channels * o.bands}});
  out.buffers.push_back({kDeviation, {channels * o.bands}});
}

void set_frontend(const FrontendOptions& o, Weights& weights) {
  if (o.kind != FrontendKind::rotations) return;
  const FrontendRotations r = frontend_rotations(o);
  const auto round = [](double x) { return static_cast<float>(x); };
  std::transform(r.theta.begin(), r.theta.end(), weights.find(kTheta).begin(), round);
  std::transform(r.gamma_log.begin(), r.gamma_log.end(), weights.find(kGamma).begin(), round);
  const auto mean = weights.find(kMean), deviation = weights.find(kDeviation);
  std::fill(mean.begin(), mean.end(), 0.0f);
  std::fill(deviation.begin(), deviation.end(), 1.0f);
}

int64_t longest_tokens(const FrontendOptions& options, std::span<const int64_t> offsets) {
  const int64_t longest = longest_of(offsets);
  return longest == 0 ? 0 : frontend_tokens(options, longest);
}

PackedInput Frontend::forward(const Input& in) {
  if (!in.options.used()) return in.batch;
  const auto channels =
      static_cast<size_t>(frontend_channels(in.options, static_cast<int64_t>(in.channels)));
  frontend_offsets(in.options, in.batch.offsets.data(), std::ssize(in.batch.offsets) - 1, offsets_);
  const auto count = static_cast<size_t>(offsets_.back());
  memory_.reset();
  tokens_ = memory_.take<float>(count * channels);
  const float* x = in.batch.values.data();
  if (in.options.kind == FrontendKind::patch) {
    kernels::patches_forward(patches_of(in), sequences_of(in), offsets_.data(), x, tokens_,
                             in.threads);
  } else {
    const kernels::RotationBank bank(rotations_of(in), memory_);
    kept_ = in.backward ? memory_.take<float>(count * bank.kept_size()) : nullptr;
    kernels::rotations_forward(bank, sequences_of(in), offsets_.data(), x, tokens_, kept_,
                               in.threads);
  }
  return {offsets_, {}, {tokens_, count * channels}};
}

void Frontend::backward(const Input& in, const float* dtokens, FlatArray& out, float* dvalues) {
  if (in.options.kind == FrontendKind::patch) {
    if (dvalues == nullptr) return;
    return kernels::patches_backward(patches_of(in), sequences_of(in), offsets_.data(), dtokens,
                                     dvalues, in.threads);
  }
  const bool learn = in.options.learn;
  if (in.options.kind != FrontendKind::rotations || (!learn && dvalues == nullptr)) return;
  kernels::Arena memory;
  const kernels::RotationBank bank(rotations_of(in), memory);
  std::vector<double> theta(bank.bands()), gamma_log(bank.bands());
  kernels::rotations_backward(bank, sequences_of(in), offsets_.data(), in.batch.values.data(),
                              kept_, dtokens, {theta.data(), gamma_log.data(), dvalues}, in.threads,
                              scratch_);
  if (!learn) return;
  const WeightLayout& layout = in.weights.layout();
  std::copy(theta.begin(), theta.end(), out.of(*layout.find(kTheta)).begin());
  std::copy(gamma_log.begin(), gamma_log.end(), out.of(*layout.find(kGamma)).begin());
}

}  // namespace rotrnn
