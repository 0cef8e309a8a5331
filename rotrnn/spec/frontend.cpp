#include "rotrnn/spec/frontend.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace rotrnn {
namespace {

constexpr double kLow = 60.0 / 16000, kHigh = 7700.0 / 16000, kWidth = 25.0 / 16000;

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument("frontend: " + what);
}

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

void resolve_rotations(FrontendOptions& o, double rate) {
  const double unit = rate > 0 ? rate : 1;
  if (o.hop == 0) o.hop = rate > 0 ? std::max<int64_t>(1, std::llround(rate / 100)) : 16;
  if (o.hop < 0) fail("hop is " + std::to_string(o.hop) + "; give the samples of one token");
  if (o.bands < 1) fail("bands is " + std::to_string(o.bands) + "; there must be at least 1");
  if (o.low == 0) o.low = kLow * unit;
  if (o.high == 0) o.high = kHigh * unit;
  const char* units = rate > 0 ? " Hz" : " cycles per step";
  if (!(o.low > 0 && o.low <= o.high && o.high <= unit / 2)) {
    fail("the bands go from low = " + number(o.low) + " to high = " + number(o.high) + units +
         "; they must be above 0, in this order, and at most half the sample rate (" +
         number(unit / 2) + ")");
  }
}

void resolve_patch(FrontendOptions& o) {
  if (o.size == 0) o.size = 16;
  if (o.stride == 0) o.stride = o.size;
  if (o.size < 1) fail("size is " + std::to_string(o.size) + "; give the samples of one token");
  if (o.stride < 1) {
    fail("stride is " + std::to_string(o.stride) + "; give the samples from one token to the next");
  }
}

}  // namespace

FrontendOptions resolve_frontend(const FrontendOptions& options, double rate) {
  FrontendOptions o = options;
  o.rate = rate;
  switch (o.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      resolve_patch(o);
      break;
    case FrontendKind::rotations:
      resolve_rotations(o, rate);
      break;
  }
  return o;
}

namespace {

std::string range(const FrontendOptions& o) {
  if (o.high == 0) return "";
  return " from " + number(o.low) + " to " + number(o.high) +
         (o.rate > 0 ? " Hz" : " cycles per step");
}

}  // namespace

std::string describe_frontend(const FrontendOptions& o) {
  switch (o.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      return "patches of " + std::to_string(o.size) + " samples, one per " +
             std::to_string(o.stride);
    case FrontendKind::rotations:
      return std::to_string(o.bands) + (o.learn ? " trained" : "") + " rotations per channel" +
             range(o) + ", one token per " + std::to_string(o.hop) + " samples";
  }
  return "none";
}

int64_t frontend_tokens(const FrontendOptions& o, int64_t samples) {
  return o.used() ? std::max<int64_t>(1, frontend_complete(o, samples)) : samples;
}

int64_t frontend_complete(const FrontendOptions& o, int64_t samples) {
  switch (o.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      return samples < o.size ? 0 : (samples - o.size) / o.stride + 1;
    case FrontendKind::rotations:
      return samples / o.hop;
  }
  return samples;
}

int64_t frontend_samples(const FrontendOptions& o, int64_t token) {
  switch (o.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      return token * o.stride + o.size;
    case FrontendKind::rotations:
      return (token + 1) * o.hop;
  }
  return token + 1;
}

int64_t frontend_channels(const FrontendOptions& o, int64_t channels) {
  switch (o.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      return channels * o.size;
    case FrontendKind::rotations:
      return channels * o.bands;
  }
  return channels;
}

void frontend_offsets(const FrontendOptions& options, const int64_t* samples, int64_t sequences,
                      std::vector<int64_t>& tokens) {
  tokens.assign(1, 0);
  for (int64_t i = 0; i < sequences; ++i) {
    tokens.push_back(tokens.back() + frontend_tokens(options, samples[i + 1] - samples[i]));
  }
}

FrontendRotations frontend_rotations(const FrontendOptions& o) {
  FrontendRotations out;
  const double unit = o.rate > 0 ? o.rate : 1, ratio = std::log(o.high / o.low);
  for (int64_t k = 0; k < o.bands; ++k) {
    const double share =
        o.bands > 1 ? static_cast<double>(k) / static_cast<double>(o.bands - 1) : 0;
    const double f = o.low / unit * std::exp(ratio * share), width = f / 8 + kWidth;
    out.theta.push_back(2 * std::numbers::pi * f);
    out.gamma_log.push_back(std::log(2 * std::numbers::pi * width));
  }
  return out;
}

}  // namespace rotrnn
