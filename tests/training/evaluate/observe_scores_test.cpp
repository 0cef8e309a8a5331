#include "rotrnn/training/evaluate/observe_scores.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rotrnn {
namespace {

TEST(AddConfusion, RowsAreTrueClasses) {
  Scores scores;
  scores.confusion = {5, 1, 0, 7};
  nlohmann::ordered_json line{{"step", 3}};
  add_confusion(line, scores, {"no", "yes"});
  EXPECT_EQ(line.dump(), R"({"step":3,"confusion":[[5,1],[0,7]],"classes":["no","yes"]})");
}

TEST(AddConfusion, NothingOfValuesAndOfTooMany) {
  nlohmann::ordered_json line{{"step", 3}};
  Scores scores;
  scores.classes = false;
  add_confusion(line, scores, {});
  scores.classes = true;
  scores.confusion.resize(65 * 65);
  add_confusion(line, scores, {});
  EXPECT_EQ(line.size(), 1u);
}

TEST(ResidentMemory, GrowsWithWhatIsTouched) {
  const double before = resident_mb();
  ASSERT_GT(before, 1);
  std::vector<char> block(64 << 20, 1);
  EXPECT_GT(resident_mb(), before + 50);
  EXPECT_EQ(block[12345], 1);
}

}  // namespace
}  // namespace rotrnn
