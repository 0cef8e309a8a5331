#include "rotrnn/kernels/block/block.h"

#include <cstring>
#include <numeric>

#include "rotrnn/kernels/oracle/block_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

using reference::BlockValues;

/// One problem: sizes, options, random parameters and inputs.
struct Problem {
  BlockConfig config;
  std::vector<int64_t> offsets{0};
  BlockValues<float> values;
  Floats mask1, mask2, dout, dfinal, dfinal_reverse;
  bool per_token = false;

  PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
};

struct Options {
  size_t D = 13, S = 7;
  std::vector<int> lengths{5, 1, 23};
  Activation activation = Activation::half_glu1;
  Norm norm = Norm::batch;
  bool prenorm = true, bidirectional = false, batch_statistics = true, residual = true;
  bool biases = true, masks = true, initial = false, start = false, per_token = false;
  bool final_gradient = true;
  Keep keep = Keep::all;
  int threads = 2;
  bool balance = false;
  size_t tile = 8;
  uint64_t seed = 1;
};

Problem make_problem(const Options& o) {
  Problem p;
  BlockConfig& c = p.config;
  c.D = o.D, c.S = o.S, c.activation = o.activation, c.norm = o.norm, c.prenorm = o.prenorm;
  c.bidirectional = o.bidirectional, c.batch_statistics = o.batch_statistics, c.keep = o.keep;
  c.threads = o.threads, c.balance = o.balance, c.tile = o.tile;
  c.residual = o.residual;
  for (int length : o.lengths) p.offsets.push_back(p.offsets.back() + length);
  const size_t n = static_cast<size_t>(p.offsets.back()), B = o.lengths.size();
  uint64_t seed = 1000 * o.seed;
  const double wide = 1 / std::sqrt(static_cast<double>(o.D));
  const double deep = 1 / std::sqrt(2.0 * static_cast<double>(o.S));
  BlockValues<float>& v = p.values;
  v.x = normal(n * o.D, ++seed);
  for (size_t i = 0; i < v.x.size(); ++i) v.x[i] += 0.3f * static_cast<float>(i % o.D);
  v.W = normal(2 * o.S * o.D, ++seed, wide);
  v.V = normal(o.D * 2 * o.S, ++seed, deep);
  if (o.bidirectional) v.V_reverse = normal(o.D * 2 * o.S, ++seed, deep);
  p.per_token = o.per_token;
  const size_t lambdas = o.per_token ? n * o.S : o.S;
  const Floats radius = uniform(lambdas, ++seed, 0.5, 0.99), angle = uniform(lambdas, ++seed, 0, 3);
  for (size_t i = 0; i < lambdas; ++i) {
    v.lambda_re.push_back(radius[i] * std::cos(angle[i]));
    v.lambda_im.push_back(radius[i] * std::sin(angle[i]));
  }
  v.D = normal(o.D, ++seed);
  if (o.biases) {
    v.b = normal(2 * o.S, ++seed);
    v.e = normal(o.D, ++seed);
  }
  if (o.start) {
    v.start_re = normal(o.S, ++seed);
    v.start_im = normal(o.S, ++seed);
  }
  if (o.activation != Activation::gelu && o.activation != Activation::none) {
    v.gate_weight = normal(o.D * o.D, ++seed, wide);
    v.gate_bias = normal(o.D, ++seed);
  }
  if (o.activation == Activation::full_glu || o.activation == Activation::exact_glu) {
    v.value_weight = normal(o.D * o.D, ++seed, wide);
    v.value_bias = normal(o.D, ++seed);
  }
  v.norm_weight = uniform(o.D, ++seed, 0.5, 1.5);
  v.norm_bias = normal(o.D, ++seed);
  if (o.initial) {
    v.initial = normal(B * 2 * o.S, ++seed);
    if (o.bidirectional) v.initial_reverse = normal(B * 2 * o.S, ++seed);
  }
  if (o.masks) {
    p.mask1 = uniform(B * o.D, ++seed, 0, 1);
    for (float& m : p.mask1) m = m < 0.2f ? 0.0f : 1.25f;
    p.mask2 = uniform(B * o.D, ++seed, 0, 1);
    for (float& m : p.mask2) m = m < 0.2f ? 0.0f : 1.25f;
  }
  p.dout = normal(n * o.D, ++seed);
  if (o.final_gradient) {
    p.dfinal = normal(B * 2 * o.S, ++seed);
    if (o.bidirectional) p.dfinal_reverse = normal(B * 2 * o.S, ++seed);
  }
  return p;
}

struct Result {
  Floats out, final_state, final_reverse;
  Doubles statistics;
  BlockValues<float> gradients;
};

const float* data_or_null(const Floats& v) {
  return v.empty() ? nullptr : v.data();
}

float* data_or_null(Floats& v) {
  return v.empty() ? nullptr : v.data();
}

/// Gradients of what belongs to the layer, but D and e.
void set_layer_gradients(BlockValues<float>& g, BlockGradients& to) {
  point_to(static_cast<Diagonal<float>&>(g), to.layer);
  to.layer.D = to.layer.e = nullptr;
  to.initial = data_or_null(g.initial), to.initial_reverse = data_or_null(g.initial_reverse);
}

/// The layer of a problem as a sequence layer: the bare layer, without D and e.
struct DiagonalSequenceLayer {
  DiagonalSequenceLayer(const Problem& p, const BlockParameters& all, const BlockInput& in,
                        Result& r)
      : problem(p), config(p.config), input(in), result(r) {
    config.norm = Norm::none, config.activation = Activation::none;
    config.prenorm = true, config.residual = false, config.keep = Keep::all;
    parameters.layer = all.layer;
    parameters.layer.D = parameters.layer.e = nullptr;
    input.mask1 = input.mask2 = nullptr;
    layer.forward = [this](const float* u, float* y) { forward(u, y); };
    layer.backward = [this](const float* u, const float* dy, float* du) { backward(u, dy, du); };
  }

  void forward(const float* u, float* y) {
    saved_arena.reset();
    input.x = u;
    saved = block_save(config, problem.sequences(), saved_arena);
    block_forward(config, problem.sequences(), parameters, input,
                  {y, result.final_state.data(), data_or_null(result.final_reverse), nullptr},
                  saved, scratch);
  }

  void backward(const float* u, const float* dy, float* du) {
    input.x = u;
    OutputGradient g;
    g.value = dy;
    g.final = data_or_null(problem.dfinal), g.final_reverse = data_or_null(problem.dfinal_reverse);
    BlockGradients to;
    set_layer_gradients(result.gradients, to);
    to.x = du;
    block_backward(config, problem.sequences(), parameters, input, saved, g, to, scratch);
  }

  const Problem& problem;
  BlockConfig config;
  BlockParameters parameters;
  BlockInput input;
  Result& result;
  SequenceLayer layer;
  Arena saved_arena, scratch;
  BlockSaved saved;
};

/// Runs the fused block; its layer as it is, or as a sequence layer.
Result run_fused(const Problem& p, Arena& saved_arena, Arena& scratch, bool mixed = false) {
  const BlockValues<float>& v = p.values;
  const size_t B = p.offsets.size() - 1, S2 = 2 * p.config.S;
  Result r;
  r.out.assign(v.x.size(), NAN);
  r.final_state.assign(B * S2, NAN);
  if (p.config.bidirectional) r.final_reverse.assign(B * S2, NAN);
  r.statistics.assign(1 + 2 * p.config.D, 0);
  r.gradients = v;
  r.gradients.each([](const char*, Floats& g) { std::fill(g.begin(), g.end(), NAN); });
  BlockParameters parameters;
  point_to(static_cast<const Diagonal<float>&>(v), parameters.layer);
  parameters.layer.lambda_stride = p.per_token ? p.config.S : 0;
  parameters.value_weight = data_or_null(v.value_weight),
  parameters.value_bias = data_or_null(v.value_bias);
  parameters.gate_weight = data_or_null(v.gate_weight),
  parameters.gate_bias = data_or_null(v.gate_bias);
  parameters.norm_weight = v.norm_weight.data(), parameters.norm_bias = v.norm_bias.data();
  BlockInput input{v.x.data(),
                   data_or_null(p.mask1),
                   data_or_null(p.mask2),
                   data_or_null(v.initial),
                   data_or_null(v.initial_reverse),
                   nullptr};
  BlockOutput output{r.out.data(), r.final_state.data(), data_or_null(r.final_reverse),
                     r.statistics.data()};
  DiagonalSequenceLayer diagonal(p, parameters, input, r);
  BlockConfig config = p.config;
  if (mixed) {
    config.sequence_layer = &diagonal.layer, config.S = 0, config.bidirectional = false;
    const float *D = parameters.layer.D, *e = parameters.layer.e;
    parameters.layer = {};
    parameters.layer.D = D, parameters.layer.e = e;
    output.final = output.final_reverse = nullptr;
    input.initial = input.initial_reverse = nullptr;
  }
  saved_arena.reset();
  BlockSaved saved = block_save(config, p.sequences(), saved_arena);
  block_forward(config, p.sequences(), parameters, input, output, saved, scratch);
  if (p.config.keep == Keep::nothing) return r;
  OutputGradient dout;
  dout.value = p.dout.data();
  BlockValues<float>& g = r.gradients;
  BlockGradients to;
  if (!mixed) {
    dout.final = data_or_null(p.dfinal), dout.final_reverse = data_or_null(p.dfinal_reverse);
    set_layer_gradients(g, to);
  }
  to.x = g.x.data(), to.layer.D = data_or_null(g.D), to.layer.e = data_or_null(g.e);
  to.value_weight = data_or_null(g.value_weight), to.value_bias = data_or_null(g.value_bias);
  to.gate_weight = data_or_null(g.gate_weight), to.gate_bias = data_or_null(g.gate_bias);
  to.norm_weight = g.norm_weight.data(), to.norm_bias = g.norm_bias.data();
  block_backward(config, p.sequences(), parameters, input, saved, dout, to, scratch);
  return r;
}

Result run_fused(const Problem& p) {
  Arena saved, scratch;
  return run_fused(p, saved, scratch);
}

template <class T>
BlockValues<T> convert(BlockValues<float> v) {
  BlockValues<T> r;
  std::vector<const Floats*> from;
  v.each([&](const char*, Floats& x) { from.push_back(&x); });
  size_t i = 0;
  r.each([&](const char*, std::vector<T>& x) { x.assign(from[i]->begin(), from[i]->end()), ++i; });
  return r;
}

template <class T>
struct Oracle {
  std::vector<T> out, final_state, final_reverse;
  BlockValues<T> gradients;
};

template <class T>
Oracle<T> run_reference(const Problem& p) {
  const auto values = convert<T>(p.values);
  const auto as = [](const Floats& v) { return std::vector<T>(v.begin(), v.end()); };
  const auto f =
      reference::block_forward<T>(p.config, p.sequences(), values, as(p.mask1), as(p.mask2));
  Oracle<T> r{f.out, f.final_state[0], f.final_state[1], {}};
  r.gradients =
      reference::block_backward<T>(p.config, p.sequences(), values, as(p.mask1), as(p.mask2), f,
                                   as(p.dout), as(p.dfinal), as(p.dfinal_reverse));
  return r;
}

void expect_matches(const Problem& p, Result fused) {
  Oracle<double> exact = run_reference<double>(p);
  Oracle<float> plain = run_reference<float>(p);
  expect_close("out", fused.out, plain.out, exact.out);
  expect_close("final", fused.final_state, plain.final_state, exact.final_state);
  expect_close("final_reverse", fused.final_reverse, plain.final_reverse, exact.final_reverse);
  if (p.config.keep == Keep::nothing) return;
  std::vector<Floats*> fast, slow;
  fused.gradients.each([&](const char*, Floats& v) { fast.push_back(&v); });
  plain.gradients.each([&](const char*, Floats& v) { slow.push_back(&v); });
  size_t i = 0;
  exact.gradients.each([&](const char* name, Doubles& v) {
    const bool skipped = p.config.norm == Norm::none && std::strncmp(name, "norm", 4) == 0;
    if (!skipped) expect_close(std::string("gradient of ") + name, *fast[i], *slow[i], v);
    ++i;
  });
}

/// Σ dout⊙out + Σ dfinal⊙final of the double oracle.
double loss(const Problem& p, const BlockValues<double>& values) {
  const auto f = reference::block_forward<double>(p.config, p.sequences(), values, widen(p.mask1),
                                                  widen(p.mask2));
  double sum = 0;
  for (size_t i = 0; i < p.dout.size(); ++i) sum += p.dout[i] * f.out[i];
  for (size_t i = 0; i < p.dfinal.size(); ++i) sum += p.dfinal[i] * f.final_state[0][i];
  for (size_t i = 0; i < p.dfinal_reverse.size(); ++i) {
    sum += p.dfinal_reverse[i] * f.final_state[1][i];
  }
  return sum;
}

/// Every option at least once, many together; sizes are multiples of nothing.
std::vector<Options> variety() {
  std::vector<Options> all;
  const auto add = [&](bool bidirectional, Norm norm, bool prenorm, Activation activation,
                       bool residual) {
    const uint64_t seed = all.size() + 1;
    Options o;
    o.bidirectional = bidirectional, o.norm = norm, o.prenorm = prenorm;
    o.activation = activation, o.residual = residual;
    o.seed = seed;
    o.D = 5 + seed * 7 % 29, o.S = 1 + seed * 5 % 23;
    o.lengths = {static_cast<int>(1 + seed * 11 % 40), 1, static_cast<int>(seed % 19), 17};
    o.initial = seed % 3 == 0, o.start = seed % 3 == 1, o.per_token = seed % 4 == 2;
    o.biases = seed % 2 == 0, o.masks = seed % 5 != 0, o.batch_statistics = seed % 7 != 3;
    o.threads = 1 + static_cast<int>(seed % 4);
    all.push_back(o);
  };
  const Activation activations[] = {Activation::half_glu1, Activation::half_glu2,
                                    Activation::full_glu, Activation::exact_glu, Activation::gelu};
  for (bool bidirectional : {false, true}) {
    for (Norm norm : {Norm::batch, Norm::layer, Norm::none}) {
      for (bool prenorm : {true, false}) {
        for (Activation activation : activations) {
          add(bidirectional, norm, prenorm, activation, true);
        }
      }
    }
  }
  for (bool bidirectional : {false, true}) {
    for (Norm norm : {Norm::none, Norm::batch, Norm::layer}) {
      for (bool prenorm : {true, false}) {
        for (bool residual : {false, true}) {
          add(bidirectional, norm, prenorm, Activation::none, residual);
        }
      }
    }
    for (Activation activation : activations) {
      add(bidirectional, Norm::none, true, activation, false);
      add(bidirectional, Norm::batch, activation == Activation::gelu, activation, false);
    }
  }
  return all;
}

class BlockVariety : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, BlockVariety, ::testing::Range<size_t>(0, variety().size()));

TEST_P(BlockVariety, OracleGradientsMatchFiniteDifferences) {
  const Problem p = make_problem(variety()[GetParam()]);
  const auto values = convert<double>(p.values);
  Oracle<double> oracle = run_reference<double>(p);
  std::vector<Doubles*> gradients;
  oracle.gradients.each([&](const char*, Doubles& v) { gradients.push_back(&v); });
  size_t tensor = 0;
  auto moved = values;
  moved.each([&](const char* name, Doubles& v) {
    for (size_t probe = 0; probe < std::min<size_t>(v.size(), 4); ++probe) {
      const size_t i = (probe * 7919 + 13) % v.size();
      const double keep = v[i], h = 1e-5;
      v[i] = keep + h;
      const double up = loss(p, moved);
      v[i] = keep - h;
      const double down = loss(p, moved);
      v[i] = keep;
      const double slope = (up - down) / (2 * h);
      EXPECT_NEAR((*gradients[tensor])[i], slope, 1e-5 * (1 + std::abs(slope))) << name << " " << i;
    }
    ++tensor;
  });
}

TEST_P(BlockVariety, FusedMatchesOracle) {
  for_each_target([&] {
    for (Keep keep : {Keep::all, Keep::boundaries, Keep::nothing}) {
      for (bool balance : {false, true}) {
        Options o = variety()[GetParam()];
        o.keep = keep, o.balance = balance;
        SCOPED_TRACE("keep " + std::to_string(static_cast<int>(keep)) + " balance " +
                     std::to_string(balance));
        const Problem p = make_problem(o);
        expect_matches(p, run_fused(p));
      }
    }
  });
}

TEST_P(BlockVariety, ASequenceLayerTakesThePlaceOfTheDiagonal) {
  for (Keep keep : {Keep::all, Keep::boundaries, Keep::nothing}) {
    Options o = variety()[GetParam()];
    o.keep = keep;
    SCOPED_TRACE("keep " + std::to_string(static_cast<int>(keep)));
    const Problem p = make_problem(o);
    Arena saved, scratch;
    expect_matches(p, run_fused(p, saved, scratch, /*mixed=*/true));
  }
}

/// The layer alone: what `out` is when nothing surrounds the system.
Options bare_layer(bool bidirectional) {
  Options o;
  o.norm = Norm::none, o.activation = Activation::none, o.residual = false, o.masks = false;
  o.bidirectional = bidirectional;
  return o;
}

TEST(Block, OneSequenceOnManyThreads) {
  for (bool bidirectional : {false, true}) {
    for (bool per_token : {false, true}) {
      for (int threads : {2, 3, 4}) {
        for (Keep keep : {Keep::all, Keep::boundaries}) {
          for (bool bare : {false, true}) {
            Options o = bare ? bare_layer(bidirectional) : Options{};
            o.lengths = {101};
            o.bidirectional = bidirectional, o.per_token = per_token, o.threads = threads;
            o.keep = keep, o.start = true, o.D = 17, o.S = 19;
            const Problem p = make_problem(o);
            ASSERT_TRUE(make_plan(p.sequences(), o.tile, threads, false).chunked);
            expect_matches(p, run_fused(p));
          }
        }
      }
    }
  }
}

/// The equations of a Diagonal and no others: y_t = V·z_t + D⊙u_t + e.
TEST(Block, BareLayerIsTheDiagonal) {
  Problem p = make_problem(bare_layer(false));
  const size_t D = p.config.D, S = p.config.S;
  const BlockValues<float>& v = p.values;
  const Result r = run_fused(p);
  for (size_t i = 0; i < p.sequences().count; ++i) {
    Doubles re(S), im(S);
    for (size_t t = p.sequences().begin(i); t < p.sequences().end(i); ++t) {
      for (size_t k = 0; k < S; ++k) {
        double a = v.b[k], b = v.b[S + k];
        for (size_t c = 0; c < D; ++c) {
          a += static_cast<double>(v.W[k * D + c]) * v.x[t * D + c];
          b += static_cast<double>(v.W[(S + k) * D + c]) * v.x[t * D + c];
        }
        const double was = re[k];
        re[k] = a + v.lambda_re[k] * was - v.lambda_im[k] * im[k];
        im[k] = b + v.lambda_im[k] * was + v.lambda_re[k] * im[k];
      }
      for (size_t c = 0; c < D; ++c) {
        double y = static_cast<double>(v.D[c]) * v.x[t * D + c] + v.e[c];
        for (size_t k = 0; k < S; ++k) {
          y += v.V[c * 2 * S + k] * re[k] + v.V[c * 2 * S + S + k] * im[k];
        }
        EXPECT_NEAR(r.out[t * D + c], y, 1e-5 * (1 + std::abs(y)));
      }
    }
  }
}

bool same_bits(const Floats& a, const Floats& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same_bits(Result a, Result b) {
  EXPECT_TRUE(same_bits(a.out, b.out));
  std::vector<Floats> left;
  a.gradients.each([&](const char*, Floats& v) { left.push_back(v); });
  size_t i = 0;
  b.gradients.each(
      [&](const char* name, Floats& v) { EXPECT_TRUE(same_bits(left[i++], v)) << name; });
}

TEST(Block, SameBitsForAnyThreadCount) {
  for (bool bidirectional : {false, true}) {
    for (Options o : {Options{}, bare_layer(bidirectional)}) {
      o.bidirectional = bidirectional;
      o.lengths = {40, 3, 77, 1, 19, 64, 8};
      o.threads = 1;
      const Result one = run_fused(make_problem(o));
      for (int threads : {2, 3, 4}) {
        o.threads = threads;
        expect_same_bits(one, run_fused(make_problem(o)));
      }
    }
  }
}

TEST(Block, NoSequencesAndEmptySequences) {
  for (std::vector<int> lengths : {std::vector<int>{}, {0}, {0, 0}, {0, 4, 0}}) {
    for (bool bidirectional : {false, true}) {
      for (Options o : {Options{}, bare_layer(bidirectional)}) {
        o.lengths = lengths, o.bidirectional = bidirectional, o.initial = true;
        const Problem p = make_problem(o);
        expect_matches(p, run_fused(p));
      }
    }
  }
}

BlockParameters parameters_of(const Problem& p) {
  const BlockValues<float>& v = p.values;
  BlockParameters r;
  point_to(static_cast<const Diagonal<float>&>(v), r.layer);
  r.gate_weight = v.gate_weight.data(), r.gate_bias = v.gate_bias.data();
  r.norm_weight = v.norm_weight.data(), r.norm_bias = v.norm_bias.data();
  return r;
}

/// x → block → block; the gradient of x and of the first norm's weight. `chained` hands statistics
/// and the pending part of the gradient from block to block.
std::vector<Floats> run_two(const Problem& p, bool chained) {
  const size_t n = p.values.x.size(), D = p.config.D;
  Floats x1(n), x2(n), dx1(n), dx0(n), dweight(D), pending(2 * D);
  Doubles statistics(1 + 2 * D);
  Arena saved_arena, scratch;
  BlockInput input[2];
  input[0].x = p.values.x.data(), input[1].x = x1.data();
  BlockOutput output[2];
  output[0].out = x1.data(), output[1].out = x2.data();
  if (chained) input[1].statistics = output[0].statistics = statistics.data();
  BlockSaved saved[2];
  for (size_t l = 0; l < 2; ++l) {
    saved[l] = block_save(p.config, p.sequences(), saved_arena);
    block_forward(p.config, p.sequences(), parameters_of(p), input[l], output[l], saved[l],
                  scratch);
  }
  OutputGradient gradient;
  gradient.value = p.dout.data();
  BlockGradients to;
  to.x = dx1.data();
  if (chained) to.pending = pending.data();
  block_backward(p.config, p.sequences(), parameters_of(p), input[1], saved[1], gradient, to,
                 scratch);
  gradient.value = dx1.data();
  if (chained)
    gradient.out = x1.data(), gradient.q = pending.data(), gradient.s = pending.data() + D;
  to = {};
  to.x = dx0.data(), to.norm_weight = dweight.data();
  block_backward(p.config, p.sequences(), parameters_of(p), input[0], saved[0], gradient, to,
                 scratch);
  return {x2, dx0, dweight};
}

TEST(Block, ChainedBlocksEqualSeparateOnes) {
  for (bool prenorm : {true, false}) {
    Options o;
    o.prenorm = prenorm, o.masks = false;
    const Problem p = make_problem(o);
    // The statistics of a block's output are for a prenorm that follows.
    const auto apart = run_two(p, false), chained = run_two(p, prenorm);
    for (size_t i = 0; i < apart.size(); ++i) {
      EXPECT_LE(max_difference(apart[i], chained[i]), 1e-5 * max_value(apart[i])) << i;
    }
  }
}

TEST(Block, ReduceJoinsProcesses) {
  // Two processes with the same batch: all sums double, and nothing else changes.
  for (bool prenorm : {true, false}) {
    Options o;
    o.prenorm = prenorm;
    Problem p = make_problem(o);
    const Result alone = run_fused(p);
    int calls = 0;
    p.config.reduce = [&](double* sums, size_t count) {
      ++calls;
      for (size_t i = 0; i < count; ++i) sums[i] *= 2;
    };
    const Result joined = run_fused(p);
    EXPECT_EQ(calls, 2);
    expect_same_bits(alone, joined);
  }
}

TEST(Block, TimesAreCountedWhenAsked) {
  Problem p = make_problem({});
  StageTimes times;
  p.config.times = &times;
  run_fused(p);
  for (size_t i = 0; i < static_cast<size_t>(Stage::count); ++i) {
    EXPECT_GT(times.forward[i], 0) << i;
    EXPECT_GT(times.backward[i], 0) << i;
  }
}

TEST(Block, ArenasStopGrowing) {
  const Problem p = make_problem({});
  Arena saved, scratch;
  run_fused(p, saved, scratch);
  run_fused(p, saved, scratch);
  const size_t bytes = saved.capacity() + scratch.capacity();
  const Result again = run_fused(p, saved, scratch);
  EXPECT_EQ(bytes, saved.capacity() + scratch.capacity());
  expect_same_bits(again, run_fused(p));
}

}  // namespace
}  // namespace rotrnn::kernels::testing
