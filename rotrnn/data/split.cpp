#include "rotrnn/data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <regex>
#include <stdexcept>

#include "rotrnn/data/pattern.h"
#include "rotrnn/data/shuffle.h"

namespace rotrnn {
namespace {

using Numbers = std::vector<int64_t>;

// Streams of RandomSite::split.
enum Choice : uint64_t { kDrawValidation, kDrawTestPart, kDrawTrainPart, kDrawTest };

Random random_for(const TaskOptions& o, Choice choice, uint64_t part = 0) {
  return part == 0 ? Random(static_cast<uint64_t>(o.seed), RandomSite::split, {choice})
                   : Random(static_cast<uint64_t>(o.seed), RandomSite::split, {choice, part});
}

Numbers shuffled_numbers(const Numbers& from, Random random) {
  Numbers out;
  for (const int64_t i : shuffled(std::ssize(from), std::move(random))) out.push_back(from[i]);
  return out;
}

SplitBy method_of(const TaskOptions& o) {
  if (o.split != SplitBy::automatic) return o.split;
  switch (o.target) {
    case TaskTarget::label:
      return SplitBy::stratified;
    case TaskTarget::forecast:
      return SplitBy::time;
    case TaskTarget::value:
    case TaskTarget::token_label:
      break;
  }
  return SplitBy::random;
}

// `count` of `from`, every class in its share: the classes with the largest remainders get the
// examples that whole numbers leave over.
Numbers take_stratified(const Records& r, const Numbers& from, int64_t count, const TaskOptions& o,
                        Choice choice) {
  std::map<int64_t, Numbers> by_class;
  for (const int64_t i : from) by_class[r.labels[i]].push_back(i);
  struct Share {
    int64_t label, whole;
    double rest;
  };
  std::vector<Share> shares;
  int64_t left = count;
  for (const auto& [label, members] : by_class) {
    const double exact = static_cast<double>(count) * static_cast<double>(members.size()) /
                         static_cast<double>(from.size());
    const auto whole = static_cast<int64_t>(exact);
    shares.push_back({label, whole, exact - static_cast<double>(whole)});
    left -= whole;
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.rest > b.rest; });
  for (Share& s : shares) s.whole += left-- > 0;
  Numbers out;
  for (const Share& s : shares) {
    const auto order = shuffled_numbers(by_class[s.label],
                                        random_for(o, choice, static_cast<uint64_t>(s.label) + 2));
    out.insert(out.end(), order.begin(), order.begin() + std::min(s.whole, std::ssize(order)));
  }
  return out;
}

// Whole groups, in random order, until there are `count` examples.
Numbers take_groups(const Records& r, const Numbers& from, int64_t count, const TaskOptions& o,
                    Choice choice) {
  std::map<std::string, Numbers> by_group;
  for (const int64_t i : from) {
    if (r.examples[i].group.empty()) {
      throw std::invalid_argument(
          fmt::format("task.split: \"group\" needs a group for every example, and {} has none; see "
                      "task.group_pattern and task.group_column",
                      r.examples[i].name));
    }
    by_group[r.examples[i].group].push_back(i);
  }
  Numbers names(by_group.size());
  std::iota(names.begin(), names.end(), 0);
  Numbers out;
  for (const int64_t g : shuffled_numbers(names, random_for(o, choice))) {
    if (std::ssize(out) >= count) break;
    const auto& members = std::next(by_group.begin(), g)->second;
    out.insert(out.end(), members.begin(), members.end());
  }
  return out;
}

Numbers take(const Records& r, const Numbers& from, int64_t count, const TaskOptions& o,
             Choice choice) {
  Numbers out;
  switch (method_of(o)) {
    case SplitBy::stratified:
      out = take_stratified(r, from, count, o, choice);
      break;
    case SplitBy::group:
      out = take_groups(r, from, count, o, choice);
      break;
    case SplitBy::automatic:
    case SplitBy::random:
    case SplitBy::time: {
      const auto order = shuffled_numbers(from, random_for(o, choice));
      out.assign(order.begin(), order.begin() + std::min(count, std::ssize(order)));
      break;
    }
  }
  std::sort(out.begin(), out.end());  // in the order of the data
  return out;
}

Numbers without(const Numbers& all, const Numbers& taken) {
  Numbers out;
  std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(), std::back_inserter(out));
  return out;
}

// At most `limit` at random, in the order of the data; a larger part holds the smaller one.
Numbers limited(const Numbers& all, int64_t limit, Random random) {
  if (limit <= 0 || limit >= std::ssize(all)) return all;
  Numbers out = shuffled_numbers(all, std::move(random));
  out.resize(static_cast<size_t>(limit));
  std::sort(out.begin(), out.end());
  return out;
}

int64_t count_of(int64_t given, double share, int64_t of) {
  return given > 0 ? given : std::max<int64_t>(1, std::llround(share * static_cast<double>(of)));
}

struct Sets {
  Numbers any, train, validation, test;
};

// By what the data and the patterns say.
Sets given_sets(const Records& r, const TaskOptions& o) {
  const Pattern test("task.test_pattern", o.test_pattern);
  const Pattern validation("task.validation_pattern", o.validation_pattern);
  Sets s;
  for (int64_t i = 0; i < r.size(); ++i) {
    const Record& e = r.examples[i];
    Split split = e.split;
    if (validation.found(e.name)) split = Split::validation;
    if (test.found(e.name)) split = Split::test;
    Numbers* places[] = {&s.any, &s.train, &s.validation, &s.test};
    places[static_cast<size_t>(split)]->push_back(i);
  }
  for (const auto& [pattern, set, key] :
       {std::tuple(&o.test_pattern, &s.test, "test_pattern"),
        std::tuple(&o.validation_pattern, &s.validation, "validation_pattern")}) {
    if (!pattern->empty() && set->empty()) {
      throw std::invalid_argument(fmt::format("task.{}: \"{}\" matches no name; one of them is {}",
                                              key, *pattern,
                                              r.examples.empty() ? "" : r.examples.front().name));
    }
  }
  return s;
}

SplitParts whole_parts(const Sets& s) {
  const auto parts = [](const Numbers& numbers) {
    std::vector<Part> out;
    for (const int64_t i : numbers) out.push_back({i, 0, -1});
    return out;
  };
  return {parts(s.train), parts(s.validation), parts(s.test)};
}

// Windows of the steps [begin, end) of a series whose forecasts are inside too.
void cut_windows(int64_t record, int64_t begin, int64_t end, const TaskOptions& o,
                 std::vector<Part>& out) {
  const int64_t behind = o.horizon * o.keep_every;  // steps that the last forecast reaches to
  const int64_t window = o.window > 0 ? o.window : end;
  for (int64_t at = begin; at + behind < end; at += window) {
    const int64_t steps = std::min(window, end - behind - at);
    if (steps > 0) out.push_back({record, at, steps});
  }
}

SplitParts forecast_parts(const Records& r, const Sets& s, const TaskOptions& o) {
  SplitParts out;
  const std::pair<const Numbers*, std::vector<Part>*> whole[] = {
      {&s.train, &out.train}, {&s.validation, &out.validation}, {&s.test, &out.test}};
  for (const auto& [numbers, parts] : whole) {
    for (const int64_t i : *numbers) cut_windows(i, 0, r.steps(i), o, *parts);
  }
  for (const int64_t i : s.any) {  // by time: the test comes last
    const auto steps = static_cast<double>(r.steps(i));
    const auto test = static_cast<int64_t>(steps * (1 - o.test_share));
    const auto validation = static_cast<int64_t>(steps * (1 - o.test_share - o.validation_share));
    cut_windows(i, 0, validation, o, out.train);
    cut_windows(i, validation, test, o, out.validation);
    cut_windows(i, test, r.steps(i), o, out.test);
  }
  return out;
}

// Chooses test and validation from what is left.
void choose(const Records& r, const TaskOptions& o, Sets& s, std::vector<std::string>& messages) {
  if (s.test.empty()) {
    Numbers& from = s.any.empty() ? s.train : s.any;
    s.test = take(r, from, count_of(o.counts.test, o.test_share, std::ssize(from)), o, kDrawTest);
    from = without(from, s.test);
  } else {
    s.test = limited(s.test, o.counts.test, random_for(o, kDrawTestPart));
  }
  s.train.insert(s.train.end(), s.any.begin(), s.any.end());
  std::sort(s.train.begin(), s.train.end());
  s.any.clear();
  if (!s.validation.empty()) {
    s.validation = limited(s.validation, o.counts.validation, random_for(o, kDrawValidation));
  } else if (o.validation_from == ValidationFrom::test) {
    s.validation = s.test;
    messages.push_back(
        "validation is the test split (task.validation_from), as the public code has it: the test "
        "accuracy is that of the best of many");
  } else {
    const int64_t count = count_of(o.counts.validation, o.validation_share, std::ssize(s.train));
    if (count >= std::ssize(s.train)) {
      throw std::invalid_argument(
          fmt::format("task.validation: {} of {} training examples leave nothing to train on",
                      count, s.train.size()));
    }
    s.validation = take(r, s.train, count, o, kDrawValidation);
    s.train = without(s.train, s.validation);
  }
  s.train = limited(s.train, o.counts.train, random_for(o, kDrawTrainPart));
}

}  // namespace

SplitParts split_records(const Records& records, const TaskOptions& options,
                         std::vector<std::string>& messages) {
  Sets sets = given_sets(records, options);
  const bool forecast = options.target == TaskTarget::forecast;
  const SplitBy method = method_of(options);
  if (method == SplitBy::time && !forecast) {
    throw std::invalid_argument(
        "task.split: \"time\" goes with task.target = \"forecast\"; choose stratified, random or "
        "group");
  }
  if (!(forecast && method == SplitBy::time && sets.train.empty())) {
    choose(records, options, sets, messages);
  }
  SplitParts out = forecast ? forecast_parts(records, sets, options) : whole_parts(sets);
  for (const auto& [parts, name] :
       {std::pair(&out.train, "train"), std::pair(&out.validation, "validation"),
        std::pair(&out.test, "test")}) {
    if (parts->empty()) {
      throw std::invalid_argument(fmt::format(
          "task: nothing is left for {}; there are {} examples{}. See task.validation_share, "
          "task.test_share and task.split",
          name, records.size(),
          !forecast                 ? ""
          : method == SplitBy::time ? ", each cut by time, and the part for it is no longer than "
                                      "the horizon; task.split = "
                                      "\"random\" holds out whole series"
                                    : ", and a forecast needs series longer than the horizon"));
    }
  }
  return out;
}

}  // namespace rotrnn
