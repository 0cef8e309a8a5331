#include "rotrnn/cli/output/score.h"

#include <fmt/format.h>

#include <algorithm>

#include "rotrnn/cli/output/text.h"

namespace rotrnn::cli {
namespace {

constexpr size_t kMatrix = 20;  // classes of the largest matrix that is shown

}  // namespace

std::string score_text(const Scores& s) {
  if (s.classes) return "accuracy " + percent(s.accuracy);
  return fmt::format(
      "MAE {:.4g}, MSE {:.4g} (naive prediction: {:.4g}, {:.4g}; {:.1f} % of its square error)",
      s.mae, s.mse, s.naive_mae, s.naive_mse, 100 * s.mse / s.naive_mse);
}

std::string class_table(const Scores& s, const std::vector<std::string>& classes) {
  std::vector<std::vector<std::string>> rows{{"class", "examples", "precision", "recall", "F1"}};
  double f1 = 0;
  int classes_there = 0;  // or predicted
  const auto scores = class_scores(s);
  for (size_t c = 0; c < scores.size(); ++c) {
    rows.push_back({classes.at(c), grouped(scores[c].examples), percent(scores[c].precision),
                    percent(scores[c].recall), percent(scores[c].f1)});
    f1 += scores[c].f1;
    classes_there += scores[c].examples > 0 || scores[c].predicted > 0;
  }
  rows.push_back({"mean", "", "", "", percent(f1 / std::max(classes_there, 1))});
  std::string out = table(rows, {1, 2, 3, 4});
  if (classes.size() > kMatrix) return out;
  std::vector<std::vector<std::string>> matrix{{"true \\ predicted"}};
  std::vector<size_t> right;
  for (size_t c = 0; c < classes.size(); ++c) {
    matrix[0].push_back(classes[c]);
    right.push_back(c + 1);
    std::vector<std::string> row{classes[c]};
    for (size_t k = 0; k < classes.size(); ++k) {
      row.push_back(grouped(s.confusion[c * classes.size() + k]));
    }
    matrix.push_back(std::move(row));
  }
  return out + "\n" + table(matrix, right);
}

}  // namespace rotrnn::cli
