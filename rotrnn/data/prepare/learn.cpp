#include "rotrnn/data/prepare/learn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>

#include "rotrnn/spec/stored.h"

namespace rotrnn {

Preprocessing learn_characters(const Records& records, std::span<const int64_t> train,
                               int64_t min_frequency, int64_t max_length) {
  std::map<std::string, int64_t, std::less<>> counts;  // UTF-8 sorts as code points do
  std::array<int64_t, 128> ascii{};
  const int64_t towers = records.form.towers;
  for (const int64_t example : train) {
    for (int64_t k = 0; k < towers; ++k) {
      each_character(records.sequences.at(example * towers + k), [&](std::string_view character) {
        if (character.size() == 1) {
          ++ascii[static_cast<uint8_t>(character[0]) & 127];
        } else if (const auto found = counts.find(character); found != counts.end()) {
          ++found->second;
        } else {
          counts.emplace(character, 1);
        }
        return true;
      });
    }
  }
  Preprocessing p;
  p.kind = Preprocessing::Kind::characters;
  p.form = records.form;
  p.max_length = max_length;
  p.end_mark = true;
  p.vocabulary = special_tokens();
  for (size_t i = 0; i < ascii.size(); ++i) {
    if (ascii[i] >= min_frequency && ascii[i] > 0)
      p.vocabulary.emplace_back(1, static_cast<char>(i));
  }
  for (const auto& [character, count] : counts) {
    if (count >= min_frequency) p.vocabulary.push_back(character);
  }
  p.characters = CharacterTable(p.vocabulary);
  return p;
}

Preprocessing learn_scale(const Records& records, std::span<const int64_t> train, bool per_step,
                          int64_t max_length) {
  Preprocessing p = fixed_scale(records.form, 0, 1, max_length);
  const int64_t C = records.form.channels;
  int64_t places = C;
  if (per_step) {
    if (C != 1) {
      throw std::invalid_argument(
          "task.normalisation: \"upstream\" is one mean for every step, for one channel only");
    }
    places = 0;
    for (const int64_t i : train) places = std::max(places, p.kept(records.steps(i)));
  }
  // Two passes in double: the squares of 16-bit samples of hours of audio need no more care.
  std::vector<double> sum(places), square(places);
  std::vector<int64_t> count(places);
  const auto visit = [&](const auto& add) {
    for (const int64_t i : train) {
      const auto sequence = records.sequences.at(i);
      const int64_t steps = p.kept(records.steps(i));
      with_element(records.form.element, [&]<typename T>(T) {
        for (int64_t t = 0; t < steps; ++t) {
          for (int64_t c = 0; c < C; ++c) {
            add(per_step ? t : c,
                load<T>(sequence.data() + (t * C + c) * sizeof(T)) * records.form.scale);
          }
        }
      });
    }
  };
  visit([&](int64_t at, double x) {
    sum[at] += x;
    ++count[at];
  });
  p.mean.resize(places);
  p.deviation.resize(places);
  for (int64_t i = 0; i < places; ++i) {
    if (per_step) count[i] = std::ssize(train);
    p.mean[i] = sum[i] / static_cast<double>(std::max<int64_t>(count[i], 1));
  }
  std::vector<int64_t> seen(places);
  visit([&](int64_t at, double x) {
    square[at] += (x - p.mean[at]) * (x - p.mean[at]);
    ++seen[at];
  });
  for (int64_t i = 0; i < places; ++i) {
    // What a shorter example does not have is 0.
    square[i] += static_cast<double>(count[i] - seen[i]) * p.mean[i] * p.mean[i];
    const double deviation =
        std::sqrt(square[i] / static_cast<double>(std::max<int64_t>(count[i], 1)));
    p.deviation[i] = per_step ? deviation + 1e-5 : deviation > 0 ? deviation : 1;
  }
  p.per_step = per_step;
  if (per_step) p.max_length = places;  // later steps have no mean
  return p;
}

}  // namespace rotrnn
