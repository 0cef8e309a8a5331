#include "rotrnn/data/prepare/learn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::message_of;

template <typename T>
Records records_of(const RecordForm& form, const std::vector<std::vector<T>>& sequences) {
  RecordWriter out;
  out.form(form, "test");
  for (size_t i = 0; i < sequences.size(); ++i) {
    Record r;
    r.name = std::to_string(i);
    out.add_values(std::move(r), std::span<const T>(sequences[i]));
  }
  return out.finish();
}

Records texts_of(const std::vector<std::string>& texts) {
  std::vector<std::vector<char>> sequences;
  for (const std::string& text : texts) sequences.emplace_back(text.begin(), text.end());
  return records_of({}, sequences);
}

std::vector<int64_t> tokens_of(const Preprocessing& p, const Records& r, int64_t i) {
  std::vector<int64_t> out(static_cast<size_t>(p.length(r.sequences.at(i))), -1);
  p.write_tokens(r.sequences.at(i), out.data());
  return out;
}

std::vector<float> values_of(const Preprocessing& p, const Records& r, int64_t i) {
  std::vector<float> out(static_cast<size_t>(p.length(r.sequences.at(i)) * r.form.channels));
  p.write_values(r.sequences.at(i), out.data());
  return out;
}

TEST(Preprocess, FrequentCharactersBecomeTokens) {
  const Records r = texts_of({"aab€€", "ab€ä", "zzz"});
  const std::vector<int64_t> train{0, 1};
  const Preprocessing p = learn_characters(r, train, 2, 0);
  // By code point after the special ones; ä and the z of what is not train are too rare.
  EXPECT_EQ(p.vocabulary, (std::vector<std::string>{"<pad>", "<unk>", "<eos>", "a", "b", "€"}));
  EXPECT_EQ(tokens_of(p, r, 0), (std::vector<int64_t>{3, 3, 4, 5, 5, 2}));
  EXPECT_EQ(tokens_of(p, r, 1), (std::vector<int64_t>{3, 4, 5, 1, 2}));
  EXPECT_EQ(tokens_of(p, r, 2), (std::vector<int64_t>{1, 1, 1, 2}));
}

TEST(Preprocess, TextsAreCutWithTheirEndMark) {
  const Records r = texts_of({"€€€€€", "€€", "€€€"});
  const std::vector<int64_t> train{0, 1, 2};
  const Preprocessing p = learn_characters(r, train, 1, 4);
  EXPECT_EQ(tokens_of(p, r, 0), (std::vector<int64_t>{3, 3, 3, 2}));
  EXPECT_EQ(tokens_of(p, r, 1), (std::vector<int64_t>{3, 3, 2}));
  EXPECT_EQ(tokens_of(p, r, 2), (std::vector<int64_t>{3, 3, 3, 2}));
  const Preprocessing bytes = byte_tokens(r.form, 4);
  EXPECT_EQ(bytes.vocabulary.size(), 259u);
  EXPECT_EQ(tokens_of(bytes, r, 0), (std::vector<int64_t>{3 + 0xE2, 3 + 0x82, 3 + 0xAC, 2}));
}

TEST(Preprocess, ScaleIsThatOfTrain) {
  const double scale = 1.0 / 32768;
  const std::vector<std::vector<int16_t>> data{
      {100, -3, 200, 5, -50, 8}, {7, 1000, 9, -2000}, {30000, 30000}};
  const Records r = records_of<int16_t>({Element::i16, 2, scale, 1}, data);
  const std::vector<int64_t> train{0, 1};
  const Preprocessing p = learn_scale(r, train, false, 0);
  for (size_t c = 0; c < 2; ++c) {
    std::vector<double> seen;
    for (size_t i = 0; i < 2; ++i) {
      for (size_t k = c; k < data[i].size(); k += 2) seen.push_back(data[i][k] * scale);
    }
    const double mean = std::accumulate(seen.begin(), seen.end(), 0.0) / 5;
    double variance = 0;
    for (const double x : seen) variance += (x - mean) * (x - mean) / 5;
    EXPECT_NEAR(p.mean[c], mean, 1e-15);
    EXPECT_NEAR(p.deviation[c], std::sqrt(variance), 1e-15);
    EXPECT_FLOAT_EQ(values_of(p, r, 2)[c],
                    static_cast<float>((30000 * scale - mean) / std::sqrt(variance)));
  }
}

TEST(Preprocess, AConstantChannelIsOnlyShifted) {
  const Records r = records_of<float>({Element::f32, 1, 1, 1}, {{5, 5, 5}});
  const std::vector<int64_t> train{0};
  EXPECT_EQ(values_of(learn_scale(r, train, false, 0), r, 0), (std::vector<float>{0, 0, 0}));
}

// Public code pads with zeros, then takes mean and deviation of every time index over the examples.
TEST(Preprocess, UpstreamScaleOfEveryStep) {
  const std::vector<std::vector<float>> data{{1, 2, 3}, {5, 6}};
  const Records r = records_of<float>({Element::f32, 1, 1, 1}, data);
  const std::vector<int64_t> train{0, 1};
  const Preprocessing p = learn_scale(r, train, true, 0);
  const double padded[2][3] = {{1, 2, 3}, {5, 6, 0}};
  for (size_t t = 0; t < 3; ++t) {
    const double mean = (padded[0][t] + padded[1][t]) / 2;
    const double deviation = std::abs(padded[0][t] - padded[1][t]) / 2 + 1e-5;
    EXPECT_NEAR(p.mean[t], mean, 1e-12);
    EXPECT_NEAR(p.deviation[t], deviation, 1e-12);
    EXPECT_NEAR(values_of(p, r, 0)[t], (padded[0][t] - mean) / deviation, 1e-6);
  }
  const Records longer = records_of<float>({Element::f32, 1, 1, 1}, {{1, 2, 3, 4}});
  EXPECT_EQ(values_of(p, longer, 0).size(), 3u) << "later steps have no mean";
}

TEST(Preprocess, EveryOtherStepAndAnOrder) {
  const Records r = records_of<float>({Element::f32, 1, 1, 1}, {{0, 1, 2, 3, 4}});
  Preprocessing p = fixed_scale(r.form, 0, 1, 0);
  p.keep_every = 2;
  EXPECT_EQ(values_of(p, r, 0), (std::vector<float>{0, 2, 4}));
  p.keep_every = 1;
  p.order = {4, 3, 0, 1, 2};
  EXPECT_EQ(values_of(p, r, 0), (std::vector<float>{4, 3, 0, 1, 2}));
  const Records shorter = records_of<float>({Element::f32, 1, 1, 1}, {{0, 1}});
  EXPECT_THROW(values_of(p, shorter, 0), std::runtime_error);
}

TEST(Preprocess, IsTheSameAfterSavingAndLoading) {
  const Records r = texts_of({"schön €", "aaa"});
  const std::vector<int64_t> train{0, 1};
  const Preprocessing p = learn_characters(r, train, 1, 9);
  const auto json = nlohmann::json::parse(to_json(p).dump());
  const Preprocessing q = preprocessing_from_json(json);
  EXPECT_EQ(tokens_of(q, r, 0), tokens_of(p, r, 0));
  EXPECT_EQ(to_json(q), to_json(p));

  const Records s = records_of<float>({Element::f32, 1, 1, 1}, {{0.1f, 1e-7f, 3e8f}});
  Preprocessing v = learn_scale(s, std::vector<int64_t>{0}, false, 0);
  v.order = {2, 0, 1};
  const Preprocessing w = preprocessing_from_json(nlohmann::json::parse(to_json(v).dump()));
  EXPECT_EQ(values_of(w, s, 0), values_of(v, s, 0)) << "to the last bit";
}

TEST(Preprocess, FactsThatDoNotFitAreRefused) {
  const Records s = records_of<float>({Element::f32, 1, 1, 1}, {{0, 1}});
  const auto json = to_json(learn_scale(s, std::vector<int64_t>{0}, false, 0));
  const auto changed = [&](const char* key, const nlohmann::json& value) {
    auto copy = json;
    copy[key] = value;
    return copy;
  };
  EXPECT_NO_THROW(preprocessing_from_json(json));
  EXPECT_THROW(preprocessing_from_json(changed("mean", {1.0, 2.0})), std::runtime_error);
  EXPECT_THROW(preprocessing_from_json(changed("order", {0, 7})), std::runtime_error);
  EXPECT_THROW(preprocessing_from_json(changed("order", {0, -1})), std::runtime_error);
  EXPECT_THROW(preprocessing_from_json(changed("kind", "words")), std::runtime_error);
  EXPECT_THROW(preprocessing_from_json(changed("keep_every", 0)), std::runtime_error);
  EXPECT_THROW(preprocessing_from_json(changed("target_channels", {1})), std::runtime_error);
  EXPECT_THROW(preprocessing_from_json(changed("mean", "x")), nlohmann::json::exception);
  auto steps = changed("per_step", true);  // a mean for one step, and no limit of steps
  EXPECT_THROW(preprocessing_from_json(steps), std::runtime_error);
  steps["max_length"] = 2;
  EXPECT_THROW(preprocessing_from_json(steps), std::runtime_error);
  steps["max_length"] = 1;
  EXPECT_NO_THROW(preprocessing_from_json(steps));
}

}  // namespace
}  // namespace rotrnn
