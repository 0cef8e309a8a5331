#include <cmath>

#include "rotrnn/training/evaluate/evaluate.h"

namespace rotrnn {

std::vector<ClassScore> class_scores(const Scores& scores) {
  const auto n = static_cast<size_t>(std::lround(std::sqrt(scores.confusion.size())));
  const auto share = [](int64_t part, int64_t of) {
    return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0.0;
  };
  std::vector<ClassScore> out(n);
  for (size_t c = 0; c < n; ++c) {
    int64_t there = 0, predicted = 0;
    for (size_t k = 0; k < n; ++k) {
      there += scores.confusion[c * n + k];
      predicted += scores.confusion[k * n + c];
    }
    const int64_t right = scores.confusion[c * n + c];
    out[c].examples = there;
    out[c].predicted = predicted;
    out[c].precision = share(right, predicted);
    out[c].recall = share(right, there);
    out[c].f1 = share(2 * right, predicted + there);
  }
  return out;
}

}  // namespace rotrnn
