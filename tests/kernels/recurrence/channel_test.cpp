#include "rotrnn/kernels/recurrence/channel.h"

#include <cstring>

#include "rotrnn/kernels/oracle/channel_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

using reference::ChannelValues;

struct Options {
  size_t D = 19, N = 5;
  std::vector<int> lengths{70, 1, 200};
  bool bidirectional = false, skip = true, initial = false, final_gradient = false;
  int threads = 2;
  double low = 0.5, high = 0.99;  // |λ|
  uint64_t seed = 1;
};

/// One problem: sizes, random parameters and inputs.
struct Problem {
  size_t D, N;
  int threads;
  std::vector<int64_t> offsets{0};
  ChannelValues<float> values;
  Floats dy, dfinal;

  PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
  size_t states() const { return (offsets.size() - 1) * 2 * N * D; }
};

Problem make_problem(const Options& o) {
  Problem p{o.D, o.N, o.threads, {0}, {}, {}, {}};
  p.values.width = static_cast<int64_t>(o.D), p.values.states = static_cast<int64_t>(o.N);
  for (int length : o.lengths) p.offsets.push_back(p.offsets.back() + length);
  const size_t tokens = static_cast<size_t>(p.offsets.back()), count = o.N * o.D;
  uint64_t seed = 1000 * o.seed;
  ChannelValues<float>& v = p.values;
  v.u = normal(tokens * o.D, ++seed);
  const Floats radius = uniform(count, ++seed, o.low, o.high), angle = uniform(count, ++seed, 0, 3);
  for (size_t i = 0; i < count; ++i) {
    v.lambda_re.push_back(radius[i] * std::cos(angle[i]));
    v.lambda_im.push_back(radius[i] * std::sin(angle[i]));
  }
  v.c_re = normal(count, ++seed);
  v.c_im = normal(count, ++seed);
  if (o.bidirectional) {
    v.c_reverse_re = normal(count, ++seed);
    v.c_reverse_im = normal(count, ++seed);
  }
  if (o.skip) v.D = normal(o.D, ++seed);
  if (o.initial) v.initial = normal(p.states(), ++seed);
  p.dy = normal(tokens * o.D, ++seed);
  if (o.final_gradient) p.dfinal = normal(p.states(), ++seed);
  return p;
}

struct Result {
  Floats y, final_state;
  ChannelValues<float> gradients;
};

const float* data_or_null(const Floats& v) {
  return v.empty() ? nullptr : v.data();
}

float* data_or_null(Floats& v) {
  return v.empty() ? nullptr : v.data();
}

Result run_fast(const Problem& p, Arena& scratch) {
  const ChannelValues<float>& v = p.values;
  const ChannelConfig config{p.threads};
  ChannelLayer layer;
  point_to(static_cast<const Channel<float>&>(v), layer);
  const ChannelInput input{v.u.data(), data_or_null(v.initial)};
  Result r{Floats(v.u.size(), NAN), Floats(p.states(), NAN), v};
  channel_forward(config, p.sequences(), layer, input, {r.y.data(), r.final_state.data()}, scratch);
  ChannelValues<float>& g = r.gradients;
  g.each([](const char*, Floats& x) { std::fill(x.begin(), x.end(), NAN); });
  ChannelGradients to;
  point_to(static_cast<Channel<float>&>(g), to.layer);
  to.u = g.u.data(), to.initial = data_or_null(g.initial);
  channel_backward(config, p.sequences(), layer, input, {p.dy.data(), data_or_null(p.dfinal)}, to,
                   scratch);
  return r;
}

Result run_fast(const Problem& p) {
  Arena scratch;
  return run_fast(p, scratch);
}

template <class T>
ChannelValues<T> convert(const ChannelValues<float>& values) {
  ChannelValues<float> from = values;
  ChannelValues<T> to;
  std::vector<Floats> all;
  from.each([&](const char*, Floats& v) { all.push_back(v); });
  size_t i = 0;
  to.each([&](const char*, std::vector<T>& v) {
    v.assign(all[i].begin(), all[i].end());
    ++i;
  });
  return to;
}

/// The largest state that `input` drives, as u does forwards or dy backwards.
double largest_state(const Problem& p, const ChannelValues<double>& v, const Doubles& input,
                     bool backwards) {
  double most = max_value(v.initial);
  reference::for_channel_states(p.sequences(), p.D, p.N, [&](size_t i, size_t n, size_t d) {
    const auto order = reference::visit(p.sequences().begin(i), p.sequences().end(i), backwards);
    const auto lambda = reference::pair_at(v.lambda_re, v.lambda_im, n * p.D + d);
    for (auto x : reference::channel_states(input, p.D, d, order, lambda, {})) {
      most = std::max(most, std::abs(x));
    }
  });
  return most;
}

/// Values and gradients against the oracle in double, errors measured by its float twin.
void expect_matches(const Problem& p, Result fast) {
  const auto exact_values = convert<double>(p.values);
  const auto exact = reference::channel_forward(p.sequences(), p.D, p.N, exact_values);
  const auto plain = reference::channel_forward(p.sequences(), p.D, p.N, p.values);
  expect_close("y", fast.y, plain.y, exact.y);
  expect_close("final", fast.final_state, plain.final_state, exact.final_state);
  auto exact_gradients = reference::channel_backward(p.sequences(), p.D, p.N, exact_values,
                                                     widen(p.dy), widen(p.dfinal));
  auto plain_gradients =
      reference::channel_backward(p.sequences(), p.D, p.N, p.values, p.dy, p.dfinal);
  std::vector<Floats> found, float_ones;
  fast.gradients.each([&](const char*, Floats& v) { found.push_back(v); });
  plain_gradients.each([&](const char*, Floats& v) { float_ones.push_back(v); });
  // Gradients of parameters sum products over all tokens, which cancel.
  const double roots = std::sqrt(static_cast<double>(p.offsets.back()));
  const double x = roots * largest_state(p, exact_values, exact_values.u, false);
  const double h = std::max(max_value(p.dfinal),
                            largest_state(p, exact_values, widen(p.dy), true) *
                                std::max(max_value(p.values.c_re), max_value(p.values.c_im)));
  size_t i = 0;
  exact_gradients.each([&](const std::string& name, Doubles& v) {
    double scale = 0;
    if (name[0] == 'c') scale = x * max_value(p.dy);
    if (name[0] == 'l') scale = x * h;
    if (name == "D") scale = roots * max_value(p.values.u) * max_value(p.dy);
    expect_close("gradient of " + name, found[i], float_ones[i], v, scale);
    ++i;
  });
}

std::string describe(const Options& o) {
  std::string s = "D " + std::to_string(o.D) + " N " + std::to_string(o.N) + " lengths";
  for (int length : o.lengths) s += " " + std::to_string(length);
  s += o.bidirectional ? " bidirectional" : "";
  s += o.skip ? " skip" : "";
  s += o.initial ? " initial" : "";
  s += o.final_gradient ? " final" : "";
  return s + " threads " + std::to_string(o.threads) + " seed " + std::to_string(o.seed);
}

void check(const Options& o) {
  SCOPED_TRACE(describe(o));
  const Problem p = make_problem(o);
  expect_matches(p, run_fast(p));
}

TEST(Channel, MatchesOracleOnRandomSizes) {
  for_each_target([] {
    for (uint64_t seed = 1; seed <= 24; ++seed) {
      Random random(seed, RandomSite::initialise);
      const auto draw = [&](size_t low, size_t high) {
        return low + static_cast<size_t>(random.uniform() * static_cast<double>(high + 1 - low));
      };
      Options o;
      o.seed = seed, o.D = draw(1, 70), o.N = draw(1, 33), o.threads = static_cast<int>(draw(1, 4));
      o.lengths.clear();
      for (size_t i = draw(1, 3); i > 0; --i) o.lengths.push_back(static_cast<int>(draw(1, 300)));
      o.bidirectional = draw(0, 1) == 1, o.skip = draw(0, 1) == 1;
      o.initial = draw(0, 1) == 1, o.final_gradient = draw(0, 1) == 1;
      check(o);
    }
  });
}

TEST(Channel, EveryOptionAtTheEdgesOfVectorsAndTiles) {
  for_each_target([] {
    for (size_t D : {1, 16, 17}) {
      for (size_t N : {1, 2, 3, 4, 7}) {
        for (int options = 0; options < 16; ++options) {
          Options o;
          o.D = D, o.N = N, o.lengths = {63, 64, 65, 1};
          o.bidirectional = (options & 1) != 0, o.skip = (options & 2) != 0;
          o.initial = (options & 4) != 0, o.final_gradient = (options & 8) != 0;
          check(o);
        }
      }
    }
  });
}

TEST(Channel, NoSequencesAndEmptySequences) {
  for (std::vector<int> lengths : {std::vector<int>{}, {0}, {0, 0}, {0, 4, 0}}) {
    for (bool bidirectional : {false, true}) {
      Options o;
      o.lengths = lengths, o.bidirectional = bidirectional;
      o.initial = o.final_gradient = true;
      check(o);
    }
  }
}

TEST(Channel, LongSequenceNearTheUnitCircle) {
  Options o;
  o.D = 3, o.N = 2, o.lengths = {50000}, o.low = 0.999, o.high = 0.9999;
  o.bidirectional = true, o.initial = o.final_gradient = true;
  check(o);
}

/// The formulas of channel.h as sums over pairs of tokens, without a recurrence.
TEST(Channel, IsAConvolution) {
  Options o;
  o.D = 3, o.N = 4, o.lengths = {9}, o.bidirectional = true;
  const Problem p = make_problem(o);
  const ChannelValues<float>& v = p.values;
  const Result r = run_fast(p);
  for (size_t d = 0; d < o.D; ++d) {
    for (int t = 0; t < 9; ++t) {
      double y = static_cast<double>(v.D[d]) * v.u[static_cast<size_t>(t) * o.D + d];
      for (int s = 0; s < 9; ++s) {
        for (size_t n = 0; n < o.N; ++n) {
          const size_t at = n * o.D + d;
          const std::complex<double> lambda(v.lambda_re[at], v.lambda_im[at]);
          const std::complex<double> c(v.c_re[at], v.c_im[at]);
          const std::complex<double> back(v.c_reverse_re[at], v.c_reverse_im[at]);
          const auto kernel =
              s <= t ? c * std::pow(lambda, t - s) : back * std::pow(lambda, s - t - 1);
          y += kernel.real() * v.u[static_cast<size_t>(s) * o.D + d];
        }
      }
      EXPECT_NEAR(r.y[static_cast<size_t>(t) * o.D + d], y, 1e-5 * (1 + std::abs(y)));
    }
  }
}

double loss(const Problem& p, const ChannelValues<double>& values) {
  const auto r = reference::channel_forward(p.sequences(), p.D, p.N, values);
  double sum = 0;
  for (size_t i = 0; i < r.y.size(); ++i) sum += p.dy[i] * r.y[i];
  for (size_t i = 0; i < p.dfinal.size(); ++i) sum += p.dfinal[i] * r.final_state[i];
  return sum;
}

TEST(Channel, OracleGradientsAreFiniteDifferences) {
  Options o;
  o.D = 2, o.N = 3, o.lengths = {6, 1, 4};
  o.bidirectional = o.initial = o.final_gradient = true;
  const Problem p = make_problem(o);
  auto values = convert<double>(p.values);
  auto gradients =
      reference::channel_backward(p.sequences(), p.D, p.N, values, widen(p.dy), widen(p.dfinal));
  std::vector<Doubles> found;
  gradients.each([&](const char*, Doubles& v) { found.push_back(v); });
  size_t tensor = 0;
  values.each([&](const char* name, Doubles& v) {
    for (size_t i = 0; i < v.size(); ++i) {
      const double was = v[i], step = 1e-5;
      v[i] = was + step;
      const double above = loss(p, values);
      v[i] = was - step;
      const double below = loss(p, values);
      v[i] = was;
      EXPECT_NEAR(found[tensor][i], (above - below) / (2 * step), 1e-6) << name << " " << i;
    }
    ++tensor;
  });
}

bool same_bits(const Floats& a, const Floats& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same_bits(Result a, Result b) {
  EXPECT_TRUE(same_bits(a.y, b.y));
  EXPECT_TRUE(same_bits(a.final_state, b.final_state));
  std::vector<Floats> left;
  a.gradients.each([&](const char*, Floats& v) { left.push_back(v); });
  size_t i = 0;
  b.gradients.each(
      [&](const char* name, Floats& v) { EXPECT_TRUE(same_bits(left[i++], v)) << name; });
}

TEST(Channel, SameBitsForAnyThreadCount) {
  for (std::vector<int> lengths : {std::vector<int>{300}, {40, 3, 77, 1, 0, 164, 8}}) {
    for (bool bidirectional : {false, true}) {
      Options o;
      o.D = 70, o.lengths = lengths, o.bidirectional = bidirectional;
      o.initial = o.final_gradient = true, o.threads = 1;
      const Result one = run_fast(make_problem(o));
      for (int threads : {2, 3, 4}) {
        o.threads = threads;
        expect_same_bits(one, run_fast(make_problem(o)));
      }
    }
  }
}

/// PackedSequences run apart from their neighbours, and in two pieces that hand the state on.
TEST(Channel, PiecesEqualTheWhole) {
  Options o;
  o.lengths = {130};
  const Problem whole = make_problem(o);
  Options first = o, second = o;
  first.lengths = {50}, second.lengths = {80};
  Problem a = make_problem(first), b = make_problem(second);
  for (Problem* p : {&a, &b}) {
    ChannelValues<float> v = whole.values;
    const size_t from = p == &a ? 0 : 50 * o.D, count = p->values.u.size();
    v.u.assign(whole.values.u.begin() + static_cast<ptrdiff_t>(from),
               whole.values.u.begin() + static_cast<ptrdiff_t>(from + count));
    p->values = v;
  }
  const Result all = run_fast(whole), left = run_fast(a);
  b.values.initial = left.final_state;
  const Result right = run_fast(b);
  Floats joined = left.y;
  joined.insert(joined.end(), right.y.begin(), right.y.end());
  EXPECT_TRUE(same_bits(all.y, joined));
  EXPECT_TRUE(same_bits(all.final_state, right.final_state));
}

TEST(Channel, ArenaStopsGrowing) {
  Options o;
  o.bidirectional = o.initial = o.final_gradient = true;
  const Problem p = make_problem(o);
  Arena scratch;
  run_fast(p, scratch);
  run_fast(p, scratch);
  const size_t bytes = scratch.capacity();
  const Result again = run_fast(p, scratch);
  EXPECT_EQ(bytes, scratch.capacity());
  expect_same_bits(again, run_fast(p));
}

}  // namespace
}  // namespace rotrnn::kernels::testing
