#include "rotrnn/onnx/system.h"

// z_t = λ ⊙ z_{t-1} + W u_t + b with the state as one row [Re z; Im z], in real numbers.

namespace rotrnn {
namespace {

// Up to so many states, a row times a matrix of 2×2 rotations, mostly zeros, is one node that takes
// less time than the six of the sparse form: 2.9 against 6.1 µs a step at 64 in ONNX Runtime 1.30,
// 9.8 against 8.8 at 128.
constexpr int64_t kDenseStates = 64;

struct Complex {
  std::vector<float> re, im;
};

// Multiplies rows [., 2S], real parts then imaginary ones, by complex numbers [S].
class Rotation {
 public:
  Rotation(OnnxGraph& g, const std::string& name, const Complex& by, bool dense) : dense_(dense) {
    const size_t S = by.re.size();
    const auto n = static_cast<int64_t>(2 * S);
    if (dense) {
      std::vector<float> matrix(4 * S * S, 0.0f);
      for (size_t s = 0; s < S; ++s) {
        matrix[s * 2 * S + s] = matrix[(S + s) * 2 * S + S + s] = by.re[s];
        matrix[s * 2 * S + S + s] = by.im[s];
        matrix[(S + s) * 2 * S + s] = -by.im[s];
      }
      same_ = g.tensor(name + "matrix", {n, n}, matrix);
      return;
    }
    std::vector<float> same = by.re, other;
    same.insert(same.end(), by.re.begin(), by.re.end());
    for (const float x : by.im) other.push_back(-x);
    other.insert(other.end(), by.im.begin(), by.im.end());
    same_ = g.tensor(name + "same", {n}, same);
    other_ = g.tensor(name + "other", {n}, other);
  }

  /// by ⊙ z + v, in `g` or in the body of a loop in it.
  OnnxValue add(OnnxGraph& g, const OnnxValue& z, const OnnxValue& v) const {
    if (dense_) return g.add("Gemm", {z, same_, v});
    const auto planes = g.add_several("Split", {z}, 2, {{"axis", int64_t{-1}}});
    const OnnxValue swapped = g.add("Concat", {planes[1], planes[0]}, {{"axis", int64_t{-1}}});
    const OnnxValue turned =
        g.add("Add", {g.add("Mul", {z, same_}), g.add("Mul", {swapped, other_})});
    return g.add("Add", {turned, v});
  }

 private:
  bool dense_;
  OnnxValue same_, other_;
};

Complex read(const OnnxSource& source, const std::string& name) {
  return {source.numbers(name + "_re"), source.numbers(name + "_im")};
}

// λ ⊙ start: with it the state before the first step becomes a part of the first input, since
// λ·(start·v_1) + v_1 = (1 + λ·start)·v_1.
Complex lambda_start(const Complex& lambda, const Complex& start) {
  Complex out = lambda;
  for (size_t s = 0; s < out.re.size(); ++s) {
    const double a = lambda.re[s], b = lambda.im[s], c = start.re[s], d = start.im[s];
    out.re[s] = static_cast<float>(a * c - b * d);
    out.im[s] = static_cast<float>(a * d + b * c);
  }
  return out;
}

}  // namespace

OnnxSystem onnx_diagonal(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                         const OnnxFrame& frame, const OnnxValue& u, const OnnxValue& state) {
  const int64_t S = source.info().states, n = 2 * S;
  const bool both = source.info().bidirectional;
  const auto optional = [&](const std::string& name) {
    return source.has(at + name) ? source.tensor(g, at + name) : OnnxValue();
  };
  const Complex lambda = read(source, at + "lambda");
  const Rotation turn(g, at + "lambda.", lambda, S <= kDenseStates);
  OnnxValue v = onnx_linear(g, u, source.tensor(g, at + "W"), optional("b")), v_reverse = v;
  if (source.has(at + "start_re")) {
    const Rotation begin(g, at + "start.", lambda_start(lambda, read(source, at + "start")), false);
    const OnnxValue more = begin.add(g, v, v);
    if (both) v_reverse = g.add("Where", {frame.last, more, v});
    v = g.add("Where", {frame.first, more, v});
  }
  // A sequence that is read backwards begins where it ends, not in the padding.
  if (both) v_reverse = g.add("Where", {frame.inside, v_reverse, g.number(0)});

  OnnxValue z, z_reverse;
  OnnxSystem out;
  if (frame.step()) {
    z = out.state = turn.add(g, state, v);
  } else {
    OnnxGraph step = g.body("scan");
    std::vector<OnnxValue> states{state}, rows{frame.by_time(g, v, {n})};
    std::vector<int64_t> backwards{0};
    if (both) {
      states.push_back(state);
      rows.push_back(frame.by_time(g, v_reverse, {n}));
      backwards.push_back(1);
    }
    const OnnxShape shape{"batch", n};
    std::vector<OnnxValue> from, next;
    for (size_t i = 0; i < rows.size(); ++i) {
      from.push_back(step.input(at + "z." + std::to_string(i), OnnxType::f32, shape));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const OnnxValue in = step.input(at + "v." + std::to_string(i), OnnxType::f32, shape);
      next.push_back(turn.add(step, from[i], in));
    }
    for (const OnnxValue& x : next) step.output(x, OnnxType::f32, shape);
    for (const OnnxValue& x : next) {
      step.output(step.add("Identity", {x}), OnnxType::f32, shape);
    }
    const auto scanned = g.scan(std::move(step), states, rows, backwards);
    out.state = scanned[0];
    z = OnnxFrame::by_row(g, scanned[rows.size()], {n});
    if (both) z_reverse = OnnxFrame::by_row(g, scanned[rows.size() + 1], {n});
  }
  out.y = onnx_linear(g, z, source.tensor(g, at + "V"), optional("e"));
  if (both) out.y = onnx_linear(g, z_reverse, source.tensor(g, at + "V_reverse"), out.y);
  out.y = g.add("Add", {out.y, g.add("Mul", {u, source.tensor(g, at + "D")})});
  return out;
}

}  // namespace rotrnn
