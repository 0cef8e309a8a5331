#include "rotrnn/onnx/frontend.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace rotrnn {
namespace {

// Samples that one turn of the loop takes: enough that its nodes cost little per sample, few enough
// that their matrices [samples, samples, bands] stay small.
constexpr int64_t kMostTogether = 32;

int64_t together(int64_t hop) {
  int64_t best = 1;
  for (int64_t n = 1; n <= std::min(hop, kMostTogether); ++n) {
    if (hop % n == 0) best = n;
  }
  return best;
}

OnnxValue joined(OnnxGraph& g, const std::vector<OnnxValue>& shape) {
  return g.add("Concat", shape, {{"axis", int64_t{0}}});
}

OnnxValue transposed(OnnxGraph& g, const OnnxValue& x, std::vector<int64_t> perm) {
  return g.add("Transpose", {x}, {{"perm", std::move(perm)}});
}

// 1 where a sample [time, batch, 1] is of its sequence, 0 behind its end.
OnnxValue inside_of(OnnxGraph& g, const OnnxValue& x, const OnnxValue& lengths) {
  const OnnxValue time = g.add("Gather", {g.add("Shape", {x}), g.integer(0)});
  const OnnxValue place = g.add("Range", {g.integer(0), time, g.integer(1)});
  const OnnxValue less = g.add("Less", {g.add("Unsqueeze", {place, g.integers({1})}),
                                        g.add("Unsqueeze", {lengths, g.integers({0})})});
  return g.add("Unsqueeze", {g.cast(less, OnnxType::f32), g.integers({2})});
}

// x [time, batch, channels] with zeros behind, up to a multiple of `unit` and at least one.
OnnxValue filled_up(OnnxGraph& g, const OnnxFrame& frame, const OnnxValue& x, int64_t unit,
                    int64_t channels) {
  const OnnxValue time = g.add("Gather", {g.add("Shape", {x}), g.integers({0})});
  const OnnxValue rest = g.add("Mod", {time, g.integers({unit})});
  const OnnxValue more =
      g.add("Mod", {g.add("Sub", {g.integers({unit}), rest}), g.integers({unit})});
  const OnnxValue zeros =
      g.zeros(joined(g, {more, frame.batch, g.integers({channels})}), OnnxType::f32);
  return g.add("Concat", {x, zeros}, {{"axis", int64_t{0}}});
}

// The bands of a bank over `n` samples in one product each: with z = w/ξ of the sample before,
//   w_b = λ^{b+1} z + Σ_{j≤b} λ^{b-j} x_j
struct Bands {
  std::vector<float> power_re, power_im;    // [n, bands]: λ^{b+1}
  std::vector<float> inputs_re, inputs_im;  // [n, n·bands]: λ^{b-j}
  std::vector<float> xi2;

  Bands(const OnnxFrontend& f, int64_t n) {
    const auto K = static_cast<size_t>(f.options.bands), N = static_cast<size_t>(n);
    power_re.resize(N * K), power_im.resize(N * K);
    inputs_re.resize(N * N * K), inputs_im.resize(N * N * K);
    for (size_t k = 0; k < K; ++k) {
      const double decay = std::exp(static_cast<double>(f.gamma_log[k]));
      xi2.push_back(static_cast<float>(-std::expm1(-2 * decay)));
      const auto lambda = [&](size_t power) {
        const auto p = static_cast<double>(power);
        return std::polar(std::exp(-decay * p), static_cast<double>(f.theta[k]) * p);
      };
      for (size_t b = 0; b < N; ++b) {
        power_re[b * K + k] = static_cast<float>(lambda(b + 1).real());
        power_im[b * K + k] = static_cast<float>(lambda(b + 1).imag());
        for (size_t j = 0; j <= b; ++j) {
          inputs_re[(j * N + b) * K + k] = static_cast<float>(lambda(b - j).real());
          inputs_im[(j * N + b) * K + k] = static_cast<float>(lambda(b - j).imag());
        }
      }
    }
  }
};

// The loop: from states [batch·channels, bands] over x [turns, batch·channels, n], the last states
// and the sums of |w|² of every turn.
std::vector<OnnxValue> run_bands(OnnxGraph& g, const Bands& bands, int64_t n, int64_t K,
                                 const std::vector<OnnxValue>& states, const OnnxValue& x,
                                 const OnnxValue& inside) {
  const OnnxValue power_re = g.tensor("frontend.power_re", {n, K}, bands.power_re);
  const OnnxValue power_im = g.tensor("frontend.power_im", {n, K}, bands.power_im);
  const OnnxValue inputs_re = g.tensor("frontend.inputs_re", {n, n * K}, bands.inputs_re);
  const OnnxValue inputs_im = g.tensor("frontend.inputs_im", {n, n * K}, bands.inputs_im);
  OnnxGraph step = g.body("rotations");
  const OnnxShape state{"rows", K}, samples{"rows", n};
  const OnnxValue re = step.input("frontend.re", OnnxType::f32, state);
  const OnnxValue im = step.input("frontend.im", OnnxType::f32, state);
  const OnnxValue in = step.input("frontend.x", OnnxType::f32, samples);
  std::vector<OnnxValue> sequences{x};
  OnnxValue weight;
  if (!inside.empty()) {
    weight = step.input("frontend.inside", OnnxType::f32, samples);
    sequences.push_back(inside);
  }
  const auto driven = [&](const OnnxValue& matrix) {
    return step.add("Reshape", {step.add("MatMul", {in, matrix}), step.integers({-1, n, K})});
  };
  const auto column = [&](const OnnxValue& z) {
    return step.add("Unsqueeze", {z, step.integers({1})});
  };
  const auto mul = [&](const OnnxValue& a, const OnnxValue& b) { return step.add("Mul", {a, b}); };
  const OnnxValue r = column(re), i = column(im);
  const OnnxValue w_re =
      step.add("Add", {driven(inputs_re), step.add("Sub", {mul(r, power_re), mul(i, power_im)})});
  const OnnxValue w_im =
      step.add("Add", {driven(inputs_im), step.add("Add", {mul(r, power_im), mul(i, power_re)})});
  OnnxValue power = step.add("Add", {mul(w_re, w_re), mul(w_im, w_im)});
  if (!weight.empty()) {
    power = mul(power, step.add("Unsqueeze", {weight, step.integers({2})}));
  }
  for (const OnnxValue& w : {w_re, w_im}) {
    step.output(step.add("Gather", {w, step.integer(n - 1)}, {{"axis", int64_t{1}}}), OnnxType::f32,
                state);
  }
  step.output(step.add("ReduceSum", {power, step.integers({1})}, {{"keepdims", int64_t{0}}}),
              OnnxType::f32, state);
  // Every sequence has a result: those after the first are not used.
  if (!weight.empty()) step.output(step.add("Identity", {weight}), OnnxType::f32, samples);
  return g.scan(std::move(step), states, sequences,
                std::vector<int64_t>(sequences.size(), int64_t{0}));
}

OnnxSystem rotations(OnnxGraph& g, const OnnxFrontend& f, const OnnxFrame& frame,
                     const OnnxSamples& samples) {
  const int64_t C = f.channels, K = f.options.bands, hop = f.options.hop, n = together(hop);
  const Bands bands(f, n);
  const bool whole = !samples.lengths.empty();
  const OnnxValue x = whole ? filled_up(g, frame, samples.x, hop, C) : samples.x;
  // [time, batch, C] to [turns, batch·C, n].
  const auto turns = [&](const OnnxValue& rows) {
    const OnnxValue shape = joined(g, {g.integers({-1, n}), frame.batch, g.integers({C})});
    const OnnxValue apart = transposed(g, g.add("Reshape", {rows, shape}), {0, 2, 3, 1});
    return g.add("Reshape", {apart, g.integers({0, -1, n})});
  };
  OnnxValue inside;
  if (whole) {
    const std::vector<float> ones(static_cast<size_t>(C), 1.0f);
    inside = turns(g.add(
        "Mul", {inside_of(g, x, samples.lengths), g.tensor("frontend.ones", {1, 1, C}, ones)}));
  }
  std::vector<OnnxValue> states;
  if (whole) {
    const OnnxValue rows = g.add("Mul", {frame.batch, g.integers({C})});
    const OnnxValue zeros = g.zeros(joined(g, {rows, g.integers({K})}), OnnxType::f32);
    states = {zeros, zeros};
  } else {
    for (const OnnxValue& part : g.add_several("Split", {samples.state, g.integers({C * K, C * K})},
                                               2, {{"axis", int64_t{1}}})) {
      states.push_back(g.add("Reshape", {part, g.integers({-1, K})}));
    }
  }
  const auto results = run_bands(g, bands, n, K, states, turns(x), inside);

  std::vector<float> scale;
  for (int64_t c = 0; c < C; ++c) {
    for (const float xi2 : bands.xi2) scale.push_back(whole ? xi2 : xi2 / static_cast<float>(hop));
  }
  const OnnxValue by_token =
      joined(g, {g.integers({-1, hop / n}), frame.batch, g.integers({C * K})});
  OnnxValue power = g.add("ReduceSum", {g.add("Reshape", {results[2], by_token}), g.integers({1})},
                          {{"keepdims", int64_t{0}}});
  power = g.add("Mul", {power, g.tensor("frontend.scale", {C * K}, scale)});
  if (whole) {  // the samples of a token, fewer than a hop where there are no more
    const OnnxValue count = g.add("Min", {samples.lengths, g.integers({hop})});
    const OnnxValue column = g.add("Reshape", {count, g.integers({-1, 1})});
    power = g.add("Div", {power, g.cast(column, OnnxType::f32)});
  }
  const OnnxValue level =
      g.add("Log", {g.add("Add", {power, g.number(static_cast<float>(kPowerFloor))})});
  const OnnxValue centred = g.add("Sub", {level, g.tensor("frontend.mean", {C * K}, f.mean)});
  OnnxSystem out;
  out.y = g.add("Reshape",
                {g.add("Div", {centred, g.tensor("frontend.deviation", {C * K}, f.deviation)}),
                 g.integers({-1, C * K})});
  if (whole) return out;
  std::vector<OnnxValue> parts;
  for (size_t i = 0; i < 2; ++i) {
    parts.push_back(g.add("Reshape", {results[i], g.integers({-1, C * K})}));
  }
  out.state = g.add("Concat", parts, {{"axis", int64_t{1}}});
  return out;
}

OnnxSystem patches(OnnxGraph& g, const OnnxFrontend& f, const OnnxFrame& frame,
                   const OnnxSamples& samples) {
  const int64_t C = f.channels, size = f.options.size, stride = f.options.stride;
  OnnxValue x = samples.x;
  if (!samples.lengths.empty()) {
    x = g.add("Mul", {x, inside_of(g, x, samples.lengths)});
    const OnnxValue more =
        g.zeros(joined(g, {g.integers({size - 1}), frame.batch, g.integers({C})}), OnnxType::f32);
    x = g.add("Concat", {x, more}, {{"axis", int64_t{0}}});
  }
  const OnnxValue time = g.add("Gather", {g.add("Shape", {x}), g.integer(0)});
  const OnnxValue last = g.add("Sub", {time, g.integer(size - 1)});  // where a patch can begin
  const OnnxValue begins = g.add("Range", {g.integer(0), last, g.integer(stride)});
  std::vector<int64_t> within;
  for (int64_t k = 0; k < size; ++k) within.push_back(k);
  const OnnxValue places =
      g.add("Add", {g.add("Unsqueeze", {begins, g.integers({1})}), g.integers(within)});
  const OnnxValue tokens = transposed(g, g.add("Gather", {x, places}), {0, 2, 1, 3});
  return {g.add("Reshape", {tokens, g.integers({-1, size * C})}), {}};
}

}  // namespace

OnnxFrontend onnx_frontend(const ModelFile& file) {
  const auto copy = [](Numbers numbers) {
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  return {file.frontend,        file.shape.inputs, copy(file.theta),
          copy(file.gamma_log), copy(file.mean),   copy(file.deviation)};
}

int64_t OnnxFrontend::state_size() const {
  return options.kind == FrontendKind::rotations ? 2 * channels * options.bands : 0;
}

std::string OnnxFrontend::whole_only() const {
  if (options.kind != FrontendKind::patch || options.size == options.stride) return {};
  return "the patches of its front end are not one after the other (size " +
         std::to_string(options.size) + ", stride " + std::to_string(options.stride) + ")";
}

OnnxValue onnx_token_lengths(OnnxGraph& g, const OnnxFrontend& f, const OnnxValue& lengths) {
  if (f.options.kind == FrontendKind::rotations) {
    return g.add("Max", {g.add("Div", {lengths, g.integer(f.options.hop)}), g.integer(1)});
  }
  const OnnxValue behind =
      g.add("Max", {g.add("Sub", {lengths, g.integer(f.options.size)}), g.integer(0)});
  return g.add("Add", {g.add("Div", {behind, g.integer(f.options.stride)}), g.integer(1)});
}

OnnxSystem onnx_tokens(OnnxGraph& g, const OnnxFrontend& f, const OnnxFrame& frame,
                       const OnnxSamples& samples) {
  return f.options.kind == FrontendKind::rotations ? rotations(g, f, frame, samples)
                                                   : patches(g, f, frame, samples);
}

}  // namespace rotrnn
