#include "rotrnn/data/split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rotrnn/spec/preprocess.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::message_of;

// 100 examples: class "a" for the first 70, then "b"; group i / 10; named group_i.
Records hundred() {
  RecordWriter out;
  out.form({}, "t");
  for (int i = 0; i < 100; ++i) {
    Record r;
    r.group = fmt::format("g{}", i / 10);
    r.name = fmt::format("{}_{}", r.group, i % 10);
    r.label = std::string(1, i < 70 ? 'a' : 'b');
    out.add_text(std::move(r), "x");
  }
  return out.finish();
}

std::set<int64_t> set_of(const std::vector<Part>& parts) {
  std::set<int64_t> out;
  for (const Part& p : parts) EXPECT_TRUE(out.insert(p.record).second) << p.record << " twice";
  return out;
}

// All examples are in exactly one split.
void expect_divided(const SplitParts& parts, size_t count) {
  std::set<int64_t> all;
  size_t sum = 0;
  for (const auto* split : {&parts.train, &parts.validation, &parts.test}) {
    const auto numbers = set_of(*split);
    all.insert(numbers.begin(), numbers.end());
    sum += numbers.size();
  }
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(sum, count);
}

SplitParts split(const Records& r, const TaskOptions& o) {
  std::vector<std::string> messages;
  return split_records(r, o, messages);
}

TEST(Split, StratifiedKeepsTheSharesOfTheClasses) {
  const Records r = hundred();
  TaskOptions o;
  o.test_share = 0.2;
  const SplitParts parts = split(r, o);
  expect_divided(parts, 100);
  const auto of_class = [&](const std::vector<Part>& p, int64_t label) {
    return std::count_if(p.begin(), p.end(), [&](Part x) { return r.labels[x.record] == label; });
  };
  EXPECT_EQ(of_class(parts.test, 0), 14);
  EXPECT_EQ(of_class(parts.test, 1), 6);
  EXPECT_EQ(parts.validation.size(), 8u) << "a tenth of the 80 that are left";
  EXPECT_NEAR(static_cast<double>(of_class(parts.validation, 0)), 5.6, 1);
  TaskOptions other = o;
  other.seed = 1;
  EXPECT_EQ(set_of(split(r, o).test), set_of(parts.test));
  EXPECT_NE(set_of(split(r, other).test), set_of(parts.test));
}

TEST(Split, RandomTakesItsShareWhateverTheClass) {
  const Records r = hundred();
  TaskOptions o;
  o.split = SplitBy::random;
  o.test_share = 0.3;
  const SplitParts parts = split(r, o);
  expect_divided(parts, 100);
  EXPECT_EQ(parts.test.size(), 30u);
}

TEST(Split, GroupsAreNeverDivided) {
  const Records r = hundred();
  TaskOptions o;
  o.split = SplitBy::group;
  o.test_share = 0.15;
  const SplitParts parts = split(r, o);
  expect_divided(parts, 100);
  std::map<std::string, std::set<int>> seen;
  int number = 0;
  for (const auto* s : {&parts.train, &parts.validation, &parts.test}) {
    for (const Part& p : *s) seen[r.examples[p.record].group].insert(number);
    ++number;
  }
  for (const auto& [group, splits] : seen) EXPECT_EQ(splits.size(), 1u) << group;
  EXPECT_EQ(parts.test.size(), 20u) << "whole groups until there are 15 examples";
  Records without = hundred();
  for (Record& e : without.examples) e.group.clear();
  EXPECT_NE(message_of<std::invalid_argument>([&] { split(without, o); }).find("g0_0 has none"),
            std::string::npos);
}

TEST(Split, PatternsAndWhatTheDataSayComeFirst) {
  Records r = hundred();
  TaskOptions o;
  o.test_pattern = "_[0-4]$";
  const SplitParts parts = split(r, o);
  EXPECT_EQ(parts.test.size(), 50u);
  for (const Part& p : parts.test) EXPECT_LT(p.record % 10, 5);
  EXPECT_EQ(parts.validation.size(), 5u);
  o.test_pattern = "nothing";
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              split(r, o);
            }).find("task.test_pattern: \"nothing\" matches no name; one of them is g0_0"),
            std::string::npos);
  o.test_pattern = "(";
  EXPECT_THROW(split(r, o), std::invalid_argument);

  o.test_pattern = "";
  for (size_t i = 0; i < 100; ++i) r.examples[i].split = i < 60 ? Split::train : Split::test;
  const SplitParts given = split(r, o);
  EXPECT_EQ(given.test.size(), 40u);
  for (const Part& p : given.test) EXPECT_GE(p.record, 60);
  EXPECT_EQ(given.train.size() + given.validation.size(), 60u);
}

TEST(Split, ValidationMayBeTheTestAndSaysSo) {
  Records r = hundred();
  TaskOptions o;
  o.validation_from = ValidationFrom::test;
  std::vector<std::string> messages;
  const SplitParts parts = split_records(r, o, messages);
  EXPECT_EQ(set_of(parts.validation), set_of(parts.test));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("validation is the test split"), std::string::npos);
}

TEST(Split, NothingLeftIsAnError) {
  Records r = hundred();
  for (Record& e : r.examples) e.split = Split::test;
  EXPECT_NE(message_of<std::invalid_argument>([&] { split(r, {}); }).find("leave nothing"),
            std::string::npos);
}

// A ramp, so that a value shows its time.
Records ramps(const std::vector<int64_t>& lengths) {
  RecordWriter out;
  out.form({Element::f32, 2, 1, 1}, "t");
  for (size_t i = 0; i < lengths.size(); ++i) {
    std::vector<float> values;
    for (int64_t t = 0; t < lengths[i]; ++t) {
      values.push_back(static_cast<float>(t));
      values.push_back(static_cast<float>(-t));
    }
    Record r;
    r.name = std::to_string(i);
    out.add_values(std::move(r), std::span<const float>(values));
  }
  return out.finish();
}

TEST(Split, ForecastsAreDividedByTimeAndSeeNothingOfTheNextPart) {
  TaskOptions o;
  o.target = TaskTarget::forecast;
  o.horizon = 3;
  o.window = 16;
  o.validation_share = o.test_share = 0.2;
  const std::vector<int64_t> lengths{100, 57};
  auto records = std::make_shared<Records>(ramps(lengths));
  const SplitParts parts = split(*records, o);
  auto p = std::make_shared<Preprocessing>(fixed_scale(records->form, 0, 1, 0));
  p->horizon = 3;
  p->target_channels = {0, 1};
  const double begin[] = {0, 0.6, 0.8}, end[] = {0.6, 0.8, 1};
  const std::vector<Part>* splits[] = {&parts.train, &parts.validation, &parts.test};
  for (int s = 0; s < 3; ++s) {
    const Examples examples(records, p, *splits[s]);
    std::vector<int64_t> predicted(lengths.size());
    for (int64_t i = 0; i < examples.size(); ++i) {
      const int64_t steps = examples.length(i), record = (*splits[s])[i].record;
      EXPECT_LE(steps, 16);
      std::vector<float> x(steps * 2), y(steps * 6);
      examples.write_values(i, x.data());
      examples.write_forecasts(i, y.data());
      const auto length = static_cast<double>(lengths[record]);
      for (int64_t t = 0; t < steps; ++t) {
        EXPECT_GE(x[2 * t], std::floor(begin[s] * length));
        for (int64_t k = 0; k < 3; ++k) {
          EXPECT_EQ(y[t * 6 + 2 * k], x[2 * t] + static_cast<float>(k + 1));
          EXPECT_EQ(y[t * 6 + 2 * k + 1], -y[t * 6 + 2 * k]);
        }
        EXPECT_LT(y[t * 6 + 4], std::ceil(end[s] * length)) << "inside its own part";
      }
      predicted[record] += steps;
    }
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto length = static_cast<double>(lengths[i]);
      EXPECT_NEAR(static_cast<double>(predicted[i]), (end[s] - begin[s]) * length - 3, 1.01)
          << "every step whose next three are known";
    }
  }
}

}  // namespace
}  // namespace rotrnn
