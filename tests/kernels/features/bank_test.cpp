#include "rotrnn/kernels/features/bank.h"

#include "rotrnn/kernels/oracle/bank_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

struct Case {
  size_t groups, taps, channels;
  bool differences;
};

/// A bank with numbers of its own.
struct Example {
  Bank bank;
  std::vector<int32_t> inputs;
  Floats weights, lambda, thresholds;
};

Example make_bank(const Case& c) {
  Example e;
  e.bank.channels = c.channels;
  e.bank.differences = c.differences;
  e.bank.groups = c.groups;
  e.bank.taps = c.taps;
  const size_t S = e.bank.states();
  Random random(1, RandomSite::initialise);
  for (size_t i = 0; i < c.groups * c.taps; ++i) {
    e.inputs.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(e.bank.width()))));
  }
  e.weights = normal(c.groups * c.taps * 2 * kBankStates, 2, 0.3);
  const Floats radius = uniform(S, 3, 0.5, 0.999), angle = uniform(S, 4, 0, 3);
  e.lambda.resize(2 * S);
  for (size_t s = 0; s < S; ++s) {
    e.lambda[s] = radius[s] * std::cos(angle[s]);
    e.lambda[S + s] = radius[s] * std::sin(angle[s]);
  }
  e.thresholds = normal(kBankThresholds * S, 5, 0.3);
  e.bank.inputs = e.inputs.data();
  e.bank.weights = e.weights.data();
  e.bank.lambda = e.lambda.data();
  e.bank.thresholds = e.thresholds.data();
  return e;
}

constexpr size_t kLengths[] = {1, 2, 255, 256, 257, 700};

const Case kCases[] = {
    {1, 1, 1, false}, {1, 2, 1, true}, {3, 2, 4, true}, {17, 3, 5, false}, {33, 2, 2, false}};

struct Sequences {
  Floats values;
  std::vector<BankSequence> all;
};

Sequences make_sequences(size_t channels) {
  Sequences s;
  size_t rows = 0;
  for (const size_t length : kLengths) rows += length;
  s.values = normal(rows * channels, 6);
  const float* at = s.values.data();
  for (const size_t length : kLengths) {
    s.all.push_back({at, length});
    at += length * channels;
  }
  return s;
}

/// Shares between those of thresholds a rounding higher and lower, maxima to rounding.
void expect_features(const Bank& bank, const BankSequence& x, const float* out) {
  constexpr double kMargin = 2e-5;  // of v, about 1, after long memories in float
  const Doubles low = reference::bank_features<double>(bank, x, kMargin);
  const Doubles high = reference::bank_features<double>(bank, x, -kMargin);
  const size_t shares = kBankThresholds * bank.states();
  size_t between = 0;
  for (size_t i = 0; i < shares; ++i) {
    ASSERT_GE(out[i], low[i] - 1e-6) << i;
    ASSERT_LE(out[i], high[i] + 1e-6) << i;
    between += low[i] < high[i];
  }
  EXPECT_LE(between, shares / 20 + 1);  // so that the bounds say something
  for (size_t i = shares; i < bank.features(); ++i) ASSERT_NEAR(out[i], low[i], kMargin) << i;
}

TEST(Bank, MatchesTwin) {
  for_each_target([] {
    for (const Case& c : kCases) {
      SCOPED_TRACE(std::to_string(c.groups) + " groups, " + std::to_string(c.taps) + " taps");
      const Example e = make_bank(c);
      const Sequences s = make_sequences(c.channels);
      Floats out(s.all.size() * e.bank.features());
      bank_features(e.bank, s.all, out.data(), 2);
      for (size_t i = 0; i < s.all.size(); ++i) {
        expect_features(e.bank, s.all[i], out.data() + i * e.bank.features());
      }
    }
  });
}

TEST(Bank, SameBitsForAnyThreadsAndPortions) {
  for_each_target([] {
    for (const Case& c : kCases) {
      const Example e = make_bank(c);
      const Sequences s = make_sequences(c.channels);
      const size_t F = e.bank.features();
      Floats one(s.all.size() * F), many = one, streamed(F);
      bank_features(e.bank, s.all, one.data(), 1);
      bank_features(e.bank, s.all, many.data(), 3);
      EXPECT_EQ(one, many);
      BankState state(e.bank);
      for (size_t i = 0; i < s.all.size(); ++i) {
        for (const size_t portion : {1, 7, 256, 1000}) {
          state.reset();
          for (size_t t = 0; t < s.all[i].rows; t += portion) {
            state.push(e.bank, s.all[i].values + t * c.channels,
                       std::min(portion, s.all[i].rows - t));
          }
          state.features(streamed.data());
          EXPECT_TRUE(std::equal(streamed.begin(), streamed.end(), one.data() + i * F))
              << i << " in portions of " << portion;
        }
      }
    }
  });
}

TEST(Bank, SavedStatesGoOn) {
  const Example e = make_bank({3, 2, 4, true});
  const Sequences s = make_sequences(4);
  const BankSequence& x = s.all.back();
  for (const double keep : {1.0, 0.9}) {
    BankState whole(e.bank), first(e.bank), second(e.bank);
    for (BankState* state : {&whole, &first, &second}) state->set_keep(keep);
    whole.push(e.bank, x.values, x.rows);
    first.push(e.bank, x.values, 100);
    std::vector<std::byte> saved(first.size());
    first.save(saved.data());
    second.restore(saved.data());
    second.push(e.bank, x.values + 100 * 4, x.rows - 100);
    Floats a(e.bank.features()), b(e.bank.features());
    whole.features(a.data());
    second.features(b.data());
    EXPECT_EQ(second.steps(), static_cast<int64_t>(x.rows));
    EXPECT_LE(max_difference(a, b), keep == 1 ? 0 : 1e-5);  // forgetting weighs by powers of keep
  }
}

TEST(Bank, ForgettingMatchesTwin) {
  for_each_target([] {
    const Example e = make_bank({3, 2, 4, true});
    const Sequences s = make_sequences(4);
    const BankSequence& x = s.all.back();
    for (const double keep : {0.5, 0.99}) {
      BankState state(e.bank);
      state.set_keep(keep);
      state.push(e.bank, x.values, 300);
      state.push(e.bank, x.values + 300 * 4, x.rows - 300);
      Floats out(e.bank.features());
      state.features(out.data());
      const Doubles exact = reference::bank_forgetting<double>(e.bank, x, keep);
      // A value within a rounding of its threshold may count or not: the latest one most.
      size_t off = 0;
      for (size_t i = 0; i < out.size(); ++i) off += std::abs(out[i] - exact[i]) > 2e-5;
      EXPECT_LE(off, 1u);
    }
  });
}

TEST(Bank, SamplesAreTheValues) {
  for_each_target([] {
    const Example e = make_bank({17, 2, 2, true});
    const Floats values = normal(600 * 2, 6);
    const BankSequence x{values.data(), 600};
    std::vector<std::vector<float>> samples(e.bank.states());
    const std::vector<size_t> chosen = {0, 3, 255, 256, 599};
    bank_samples(e.bank, x, chosen, samples, 2);
    for (size_t s = 0; s < e.bank.states(); ++s) {
      const Doubles v = reference::bank_values<double>(e.bank, x, s);
      ASSERT_EQ(samples[s].size(), chosen.size());
      for (size_t i = 0; i < chosen.size(); ++i) {
        ASSERT_NEAR(samples[s][i], v[chosen[i]], 2e-5) << s << ", " << chosen[i];
      }
    }
  });
}

}  // namespace
}  // namespace rotrnn::kernels::testing
