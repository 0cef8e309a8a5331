#include "rotrnn/training/evaluate/observe_scores.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rotrnn {
namespace {

constexpr size_t kMostClasses = 64;

}  // namespace

void add_confusion(nlohmann::ordered_json& line, const Scores& scores,
                   const std::vector<std::string>& classes) {
  const auto n = static_cast<size_t>(std::lround(std::sqrt(scores.confusion.size())));
  if (!scores.classes || n == 0 || n > kMostClasses) return;
  auto rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < n; ++i) {
    const auto row = scores.confusion.begin() + static_cast<long>(i * n);
    rows.push_back(std::vector<int64_t>(row, row + static_cast<long>(n)));
  }
  line["confusion"] = std::move(rows);
  if (classes.size() == n) line["classes"] = classes;
}

double resident_mb() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  if (!(in >> all >> resident)) return -1;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace rotrnn
