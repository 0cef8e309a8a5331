#include "rotrnn/board/series.h"

#include <algorithm>

namespace rotrnn::board {
namespace {

struct Extremes {
  size_t smallest, largest;
};

Extremes extremes(const std::vector<double>& value, size_t begin, size_t end) {
  Extremes e{begin, begin};
  for (size_t i = begin + 1; i < end; ++i) {
    if (value[i] < value[e.smallest]) e.smallest = i;
    if (value[i] > value[e.largest]) e.largest = i;
  }
  return e;
}

}  // namespace

void Series::add(double step, double value) {
  if (!step_.empty() && step <= step_.back()) rewind(step);
  step_.push_back(step);
  value_.push_back(value);
  if (step_.size() > most_) thin();
}

void Series::rewind(double step) {
  const auto at = std::lower_bound(step_.begin(), step_.end(), step);
  value_.resize(static_cast<size_t>(at - step_.begin()));
  step_.erase(at, step_.end());
}

void Series::thin() {
  size_t kept = 0;
  for (size_t begin = 0; begin < step_.size(); begin += 4) {
    const Extremes e = extremes(value_, begin, std::min(begin + 4, step_.size()));
    const auto [first, second] = std::minmax(e.smallest, e.largest);
    for (size_t i : {first, second}) {
      if (kept > 0 && step_[kept - 1] >= step_[i]) continue;  // one point is both
      step_[kept] = step_[i];
      value_[kept++] = value_[i];
    }
  }
  step_.resize(kept);
  value_.resize(kept);
}

Decimated Series::decimate(double from, double to, size_t count) const {
  const auto low = std::lower_bound(step_.begin(), step_.end(), from);
  const auto high = std::upper_bound(low, step_.end(), std::max(from, to));
  size_t begin = static_cast<size_t>(low - step_.begin());
  size_t end = static_cast<size_t>(high - step_.begin());
  begin -= begin > 0;
  end += end < step_.size();
  Decimated out;
  const auto keep = [&](size_t i) {
    if (!out.step.empty() && out.step.back() >= step_[i]) return;
    out.step.push_back(step_[i]);
    out.value.push_back(value_[i]);
  };
  const size_t n = end - begin;
  if (n <= count) {
    for (size_t i = begin; i < end; ++i) keep(i);
    return out;
  }
  const size_t pieces = std::max<size_t>(1, count / 2);
  keep(begin);
  for (size_t piece = 0; piece < pieces; ++piece) {
    const size_t first = begin + n * piece / pieces, last = begin + n * (piece + 1) / pieces;
    const Extremes e = extremes(value_, first, last);
    keep(std::min(e.smallest, e.largest));
    keep(std::max(e.smallest, e.largest));
    double step = 0, value = 0;
    for (size_t i = first; i < last; ++i) {
      step += step_[i];
      value += value_[i];
    }
    out.mean_step.push_back(step / static_cast<double>(last - first));
    out.mean.push_back(value / static_cast<double>(last - first));
  }
  keep(end - 1);
  return out;
}

}  // namespace rotrnn::board
