#include <algorithm>
#include <limits>

#include "rotrnn/onnx/system.h"

// Channels with N states each, z [batch, D, 2N]: real parts, then imaginary ones. A loop outputs y
// and not z, which would be N times as much.

namespace rotrnn {
namespace {

// Complex numbers [D, N] as [D, 2N], the imaginary parts times `sign`.
class Planes {
 public:
  Planes(const OnnxSource& source, const std::string& name)
      : D_(source.info().width), N_(source.info().states) {
    re_ = source.numbers(name + "_re");
    im_ = source.numbers(name + "_im");
  }

  OnnxValue joined(OnnxGraph& g, const std::string& name, float sign) const {
    return put(g, name, re_, 1, im_, sign);
  }
  OnnxValue same(OnnxGraph& g, const std::string& name) const {
    return put(g, name, re_, 1, re_, 1);
  }
  OnnxValue other(OnnxGraph& g, const std::string& name) const {
    return put(g, name, im_, -1, im_, 1);
  }

 private:
  OnnxValue put(OnnxGraph& g, const std::string& name, const std::vector<float>& a, float a_sign,
                const std::vector<float>& b, float b_sign) const {
    std::vector<float> out;
    for (int64_t d = 0; d < D_; ++d) {
      for (int64_t n = 0; n < N_; ++n) out.push_back(a_sign * a[static_cast<size_t>(d * N_ + n)]);
      for (int64_t n = 0; n < N_; ++n) out.push_back(b_sign * b[static_cast<size_t>(d * N_ + n)]);
    }
    return g.tensor(name, {D_, 2 * N_}, out);
  }

  int64_t D_, N_;
  std::vector<float> re_, im_;
};

struct ChannelWeights {
  OnnxValue same, other;   // of λ
  OnnxValue p, q, b;       // q so that a sum of products is a real part; "" where there are none
  OnnxValue c, c_reverse;  // likewise

  ChannelWeights(OnnxGraph& g, const OnnxSource& source, const std::string& at) {
    const Planes lambda(source, at + "lambda");
    same = lambda.same(g, at + "lambda.same");
    other = lambda.other(g, at + "lambda.other");
    const auto joined = [&](const std::string& name, float sign) {
      if (!source.has(at + name + "_re")) return OnnxValue();
      return Planes(source, at + name).joined(g, at + name, sign);
    };
    p = joined("p", 1);
    q = joined("q", -1);
    b = joined("b", 1);
    c = joined("c", -1);
    c_reverse = joined("c_reverse", -1);
    if (b.empty()) {  // 1, without an imaginary part
      const int64_t N = source.info().states;
      std::vector<float> ones(static_cast<size_t>(2 * N), 0.0f);
      std::fill_n(ones.begin(), N, 1.0f);
      b = g.tensor(at + "b", {2 * N}, ones);
    }
  }

  /// Re Σ_n weight_n z_n, [batch, D] or with `keep` [batch, D, 1].
  static OnnxValue sum(OnnxGraph& g, const OnnxValue& weight, const OnnxValue& z, bool keep) {
    return g.add("ReduceSum", {g.add("Mul", {z, weight}), g.integers({-1})},
                 {{"keepdims", int64_t{keep}}});
  }

  /// The state after an input w [batch, D].
  OnnxValue next(OnnxGraph& g, const OnnxValue& z, const OnnxValue& w) const {
    const auto planes = g.add_several("Split", {z}, 2, {{"axis", int64_t{-1}}});
    const OnnxValue swapped = g.add("Concat", {planes[1], planes[0]}, {{"axis", int64_t{-1}}});
    OnnxValue out = g.add("Add", {g.add("Mul", {z, same}), g.add("Mul", {swapped, other})});
    if (!p.empty()) out = g.add("Add", {out, g.add("Mul", {sum(g, q, z, true), p})});
    const OnnxValue column = g.add("Unsqueeze", {w, g.integers({-1})});
    return g.add("Add", {out, g.add("Mul", {column, b})});
  }
};

// Σ_i liquid[i-2] ⊙ u_t ⊙ … ⊙ u_{t-i+1} as rows, and the inputs that the next steps need.
struct Products {
  OnnxValue terms, past;
};

Products products(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                  const OnnxFrame& frame, const OnnxValue& u, const OnnxValue& past) {
  const int64_t D = source.info().width, before = source.info().degree - 1;
  const std::vector<float> liquid = source.numbers(at + "liquid");
  const OnnxAttributes time_first{{"perm", std::vector<int64_t>{1, 0, 2}}};
  const OnnxValue shaped = g.add("Reshape", {past, g.integers({0, before, D})});
  const OnnxValue known = g.add("Transpose", {shaped}, time_first);
  const OnnxValue now = frame.by_time(g, u, {D});
  const OnnxValue all = g.add("Concat", {known, now}, {{"axis", int64_t{0}}});
  const auto rows = [&](int64_t from, int64_t to) {
    return g.add("Slice", {all, g.integers({from}), g.integers({to}), g.integers({0})});
  };
  OnnxValue product = now, terms;
  for (int64_t i = 1; i <= before; ++i) {
    product = g.add("Mul", {product, rows(before - i, -i)});
    const auto begin = liquid.begin() + (i - 1) * D;
    const OnnxValue weight =
        g.tensor(at + "liquid." + std::to_string(i), {D}, std::vector<float>(begin, begin + D));
    const OnnxValue term = g.add("Mul", {product, weight});
    terms = i == 1 ? term : g.add("Add", {terms, term});
  }
  Products out{OnnxFrame::by_row(g, terms, {D}), ""};
  if (frame.kind == OnnxKind::sequence) return out;
  const OnnxValue kept =
      g.add("Transpose", {rows(-before, std::numeric_limits<int64_t>::max())}, time_first);
  out.past = g.add("Reshape", {kept, g.integers({0, before * D})});
  return out;
}

}  // namespace

OnnxSystem onnx_channels(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                         const OnnxFrame& frame, const OnnxValue& u, const OnnxValue& state) {
  const runtime::ModelInfo& info = source.info();
  const int64_t D = info.width, N = info.states, before = (info.degree - 1) * D;
  const bool inside = source.file().products_inside();
  const ChannelWeights weights(g, source, at);
  OnnxValue z = state, drive = u;
  Products p;
  if (before > 0) {
    const auto parts =
        g.add_several("Split", {state, g.integers({2 * D * N, before})}, 2, {{"axis", int64_t{1}}});
    z = parts[0];
    p = products(g, source, at, frame, u, parts[1]);
    if (inside) drive = g.add("Add", {u, p.terms});
  }
  z = g.add("Reshape", {z, g.integers({0, D, 2 * N})});
  OnnxSystem out;
  OnnxValue y_reverse;
  if (frame.step()) {
    z = weights.next(g, z, drive);
    out.y = ChannelWeights::sum(g, weights.c, z, false);
  } else {
    OnnxGraph step = g.body("scan");
    const OnnxShape shape{"batch", D, 2 * N}, row{"batch", D};
    std::vector<OnnxValue> states{z}, rows{frame.by_time(g, drive, {D})};
    std::vector<int64_t> backwards{0};
    std::vector<OnnxValue> from{step.input(at + "z", OnnxType::f32, shape)};
    if (info.bidirectional) {
      states.push_back(z);
      const OnnxValue known = g.add("Where", {frame.inside, u, g.number(0)});
      rows.push_back(frame.by_time(g, known, {D}));
      backwards.push_back(1);
      from.push_back(step.input(at + "z_reverse", OnnxType::f32, shape));
    }
    std::vector<OnnxValue> next, outputs;
    for (size_t i = 0; i < rows.size(); ++i) {
      const OnnxValue in = step.input(at + "w." + std::to_string(i), OnnxType::f32, row);
      next.push_back(weights.next(step, from[i], in));
      // Backwards it is the state of the step behind this one that is read.
      outputs.push_back(i == 0 ? ChannelWeights::sum(step, weights.c, next[i], false)
                               : ChannelWeights::sum(step, weights.c_reverse, from[i], false));
    }
    for (const OnnxValue& x : next) step.output(x, OnnxType::f32, shape);
    for (const OnnxValue& x : outputs) step.output(x, OnnxType::f32, row);
    const auto results = g.scan(std::move(step), states, rows, backwards);
    z = results[0];
    out.y = OnnxFrame::by_row(g, results[rows.size()], {D});
    if (info.bidirectional) y_reverse = OnnxFrame::by_row(g, results[rows.size() + 1], {D});
  }
  if (!y_reverse.empty()) out.y = g.add("Add", {out.y, y_reverse});
  out.y = g.add("Add", {out.y, g.add("Mul", {u, source.tensor(g, at + "D")})});
  if (before > 0 && !inside) out.y = g.add("Add", {out.y, p.terms});
  if (frame.kind != OnnxKind::sequence) {
    out.state = g.add("Reshape", {z, g.integers({0, 2 * D * N})});
    if (before > 0) out.state = g.add("Concat", {out.state, p.past}, {{"axis", int64_t{1}}});
  }
  return out;
}

}  // namespace rotrnn
