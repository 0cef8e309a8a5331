#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "rotrnn/kernels/block/block.h"

/// The plain twin of every fast kernel: one loop per formula, any floating type, no tiles, no
/// threads, no planes. In double it is the oracle of the tests; in float the yardstick of their
/// errors.
namespace rotrnn::kernels::reference {

template <class T>
using Values = std::vector<T>;

// ---------------------------------------------------------------- scalar functions

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
T gelu(T x) {
  const T k = T(0.7978845608028654);  // sqrt(2/π)
  return T(0.5) * x * (T(1) + std::tanh(k * (x + T(0.044715) * x * x * x)));
}

template <class T>
T gelu_slope(T x) {
  const T k = T(0.7978845608028654);
  const T t = std::tanh(k * (x + T(0.044715) * x * x * x));
  return T(0.5) * (T(1) + t) +
         T(0.5) * x * (T(1) - t * t) * k * (T(1) + T(3) * T(0.044715) * x * x);
}

/// y·Φ(y), and its slope Φ(y) + y·Φ'(y).
template <class T>
T exact_gelu(T x) {
  return T(0.5) * x * std::erfc(-x * T(0.7071067811865476));
}

template <class T>
T exact_gelu_slope(T x) {
  const T bell = T(0.3989422804014327) * std::exp(-x * x / T(2));
  return T(0.5) * std::erfc(-x * T(0.7071067811865476)) + x * bell;
}

template <class T>
T curve_value(Curve curve, T x) {
  switch (curve) {
    case Curve::gelu:
      return gelu(x);
    case Curve::exact_gelu:
      break;
  }
  return exact_gelu(x);
}

template <class T>
T curve_slope(Curve curve, T x) {
  switch (curve) {
    case Curve::gelu:
      return gelu_slope(x);
    case Curve::exact_gelu:
      break;
  }
  return exact_gelu_slope(x);
}

// ---------------------------------------------------------------- matrices

/// C [M, N] = A [M, K]·B [K, N].
template <class T>
Values<T> product(const Values<T>& a, const Values<T>& b, size_t M, size_t K, size_t N) {
  Values<T> c(M * N, T(0));
  for (size_t i = 0; i < M; ++i) {
    for (size_t k = 0; k < K; ++k) {
      for (size_t j = 0; j < N; ++j) c[i * N + j] += a[i * K + k] * b[k * N + j];
    }
  }
  return c;
}

template <class T>
Values<T> transpose(const Values<T>& a, size_t M, size_t N) {
  Values<T> t(a.size());
  for (size_t i = 0; i < M; ++i) {
    for (size_t j = 0; j < N; ++j) t[j * M + i] = a[i * N + j];
  }
  return t;
}

// ---------------------------------------------------------------- scan

/// The order in which a direction visits tokens begin .. end.
inline std::vector<size_t> visit(size_t begin, size_t end, bool reverse) {
  std::vector<size_t> order;
  for (size_t t = begin; t < end; ++t) order.push_back(reverse ? begin + end - 1 - t : t);
  return order;
}

template <class T>
std::complex<T> state_at(const Values<T>& z, size_t row, size_t i, size_t S) {
  return {z[row * 2 * S + i], z[row * 2 * S + S + i]};
}

template <class T>
void set_state(Values<T>& z, size_t row, size_t i, size_t S, std::complex<T> value) {
  z[row * 2 * S + i] = value.real();
  z[row * 2 * S + S + i] = value.imag();
}

/// z_t = λ_t⊙z_{t-1} + v_t along `order`; `start` is z_0. λ [S], or [n, S] with stride S.
template <class T>
void scan(Values<T>& z, const std::vector<size_t>& order, size_t S, const Values<T>& re,
          const Values<T>& im, size_t stride, const std::vector<std::complex<T>>& start) {
  for (size_t i = 0; i < S; ++i) {
    std::complex<T> state = start[i];
    for (size_t t : order) {
      const std::complex<T> lambda(re[t * stride + i], im[t * stride + i]);
      state = lambda * state + state_at(z, t, i, S);
      set_state(z, t, i, S, state);
    }
  }
}

/// g_t = ∂L/∂z_t + conj(λ_{t+1})·g_{t+1}, in place; λ gradient added; returns the gradient of z_0.
template <class T>
std::vector<std::complex<T>> scan_adjoint(Values<T>& g, const Values<T>& z,
                                          const std::vector<size_t>& order, size_t S,
                                          const Values<T>& re, const Values<T>& im, size_t stride,
                                          const std::vector<std::complex<T>>& start,
                                          const std::vector<std::complex<T>>& final_gradient,
                                          Values<T>& re_gradient, Values<T>& im_gradient) {
  std::vector<std::complex<T>> carry = final_gradient;
  for (size_t i = 0; i < S; ++i) {
    for (size_t k = order.size(); k-- > 0;) {
      const size_t t = order[k];
      const std::complex<T> lambda(re[t * stride + i], im[t * stride + i]);
      const std::complex<T> here = state_at(g, t, i, S) + carry[i];
      const std::complex<T> before = k > 0 ? state_at(z, order[k - 1], i, S) : start[i];
      const std::complex<T> q = here * std::conj(before);
      re_gradient[t * stride + i] += q.real();
      im_gradient[t * stride + i] += q.imag();
      set_state(g, t, i, S, here);
      carry[i] = std::conj(lambda) * here;
    }
  }
  return carry;
}

// ---------------------------------------------------------------- norms

template <class T>
struct Normed {
  Values<T> out, hat, rstd;  // rstd per column (batch) or row (layer)
  Values<T> mean, variance;
  T members = 0;  // that a mean is of
};

/// Sums over the processes that share a batch; nothing when there is one.
template <class T>
void sum_over(const Reduce& reduce, Values<T>& sums) {
  if (!reduce) return;
  std::vector<double> doubles(sums.begin(), sums.end());
  reduce(doubles.data(), doubles.size());
  std::copy(doubles.begin(), doubles.end(), sums.begin());
}

/// Rows of x normalised; `affine`: weight and bias are the whole map (eval batch norm).
template <class T>
Normed<T> normalise(const Values<T>& x, size_t n, size_t D, Norm kind, bool affine, T eps,
                    const Values<T>& weight, const Values<T>& bias, const Reduce& reduce = {}) {
  Normed<T> r{x, x, {}, {}, {}};
  if (kind == Norm::none) return r;
  const bool batch = kind == Norm::batch, shared = batch && !affine;
  const size_t groups = batch ? D : n, members = batch ? n : D;
  const auto at = [&](size_t g, size_t m) { return batch ? m * D + g : g * D + m; };
  Values<T> sums(groups + 1), squares(groups);  // with the number of members at the end
  sums[groups] = T(members);
  for (size_t g = 0; g < groups; ++g) {
    for (size_t m = 0; m < members; ++m) sums[g] += x[at(g, m)];
  }
  if (shared) sum_over(reduce, sums);
  r.members = sums[groups];
  for (size_t g = 0; g < groups; ++g) {
    const T mean = sums[g] / r.members;
    for (size_t m = 0; m < members; ++m) {
      squares[g] += (x[at(g, m)] - mean) * (x[at(g, m)] - mean);
    }
  }
  if (shared) sum_over(reduce, squares);
  for (size_t g = 0; g < groups; ++g) {
    T mean = 0, variance = 0, rstd = 1;
    if (!(batch && affine)) {
      mean = sums[g] / r.members;
      variance = squares[g] / r.members;
      rstd = T(1) / std::sqrt(variance + eps);
    }
    for (size_t m = 0; m < members; ++m) r.hat[at(g, m)] = (x[at(g, m)] - mean) * rstd;
    r.mean.push_back(mean);
    r.variance.push_back(variance);
    r.rstd.push_back(rstd);
  }
  for (size_t i = 0; i < n * D; ++i) r.out[i] = r.hat[i] * weight[i % D] + bias[i % D];
  return r;
}

template <class T>
Values<T> normalise_backward(const Normed<T>& f, const Values<T>& dout, size_t n, size_t D,
                             Norm kind, bool affine, const Values<T>& weight, Values<T>& dweight,
                             Values<T>& dbias, const Reduce& reduce = {}) {
  if (kind == Norm::none) return dout;
  Values<T> dx(n * D);
  for (size_t i = 0; i < n * D; ++i) {
    dweight[i % D] += dout[i] * f.hat[i];
    dbias[i % D] += dout[i];
    dx[i] = dout[i] * weight[i % D];
  }
  const bool batch = kind == Norm::batch;
  const size_t groups = batch ? D : n, members = batch ? n : D;
  const auto at = [&](size_t g, size_t m) { return batch ? m * D + g : g * D + m; };
  Values<T> sums(2 * groups);
  for (size_t g = 0; g < groups; ++g) {
    for (size_t m = 0; m < members; ++m) {
      sums[g] += dx[at(g, m)];
      sums[groups + g] += dx[at(g, m)] * f.hat[at(g, m)];
    }
  }
  if (batch && !affine) sum_over(reduce, sums);
  for (size_t g = 0; g < groups; ++g) {
    const bool fixed = batch && affine;
    const T plain = fixed ? T(0) : sums[g] / f.members;
    const T with = fixed ? T(0) : sums[groups + g] / f.members;
    for (size_t m = 0; m < members; ++m) {
      dx[at(g, m)] = f.rstd[g] * (dx[at(g, m)] - plain - f.hat[at(g, m)] * with);
    }
  }
  return dx;
}

// ---------------------------------------------------------------- the block

/// Parameters, inputs and their gradients alike. Empty: absent.
template <class T>
struct BlockValues : DiagonalFields<Values<T>> {
  Values<T> x, value_weight, value_bias, gate_weight, gate_bias, norm_weight, norm_bias, initial,
      initial_reverse;

  /// Every tensor with its name.
  template <class F>
  void each(const F& f) {
    DiagonalFields<Values<T>>::each([&](const char* name, Values<T>& v, auto) { f(name, v); });
    f("x", x), f("value_weight", value_weight), f("value_bias", value_bias),
        f("gate_weight", gate_weight);
    f("gate_bias", gate_bias), f("norm_weight", norm_weight), f("norm_bias", norm_bias);
    f("initial", initial), f("initial_reverse", initial_reverse);
  }
};

template <class T>
struct BlockTrace {
  Values<T> out, final_state[2];
  Values<T> z[2], v, y, h, p, s;  // p = W1 h + b1, s = σ(W2 h + b2)
  Normed<T> norm;
  std::vector<std::vector<std::complex<T>>> start[2];
};

template <class T>
T at_or(const Values<T>& values, size_t i, T other) {
  return values.empty() ? other : values[i];
}

/// The first rows' states: given, stationary, or zero.
template <class T>
std::vector<std::complex<T>> start_state(const BlockValues<T>& p, const Values<T>& v, size_t S,
                                         size_t sequence, const std::vector<size_t>& order,
                                         bool reverse) {
  std::vector<std::complex<T>> start(S);
  const Values<T>& given = reverse ? p.initial_reverse : p.initial;
  for (size_t i = 0; i < S; ++i) {
    if (!given.empty()) {
      start[i] = state_at(given, sequence, i, S);
    } else if (!p.start_re.empty() && !order.empty()) {
      start[i] = std::complex<T>(p.start_re[i], p.start_im[i]) * state_at(v, order[0], i, S);
    }
  }
  return start;
}

/// A layer in place of z, W and V: y without D⊙u + e from u, and the gradient of u.
template <class T>
struct LayerTwin {
  std::function<Values<T>(const Values<T>& u)> forward;
  std::function<Values<T>(const Values<T>& u, const Values<T>& dy)> backward;
};

/// The diagonal system: v, z, the final states, and y without D⊙u + e.
template <class T>
void diagonal_forward(const BlockConfig& c, const PackedSequences& sequences,
                      const BlockValues<T>& p, const Values<T>& u, BlockTrace<T>& f) {
  const size_t D = c.D, S = c.S, n = sequences.tokens(), directions = c.bidirectional ? 2 : 1;
  const size_t stride = p.lambda_re.size() == S && n != 1 ? 0 : S;
  f.v = product(u, transpose(p.W, 2 * S, D), n, D, 2 * S);
  for (size_t i = 0; i < f.v.size(); ++i) f.v[i] += at_or(p.b, i % (2 * S), T(0));
  f.y.assign(n * D, T(0));
  for (size_t d = 0; d < directions; ++d) {
    f.z[d] = f.v;
    f.final_state[d].assign(sequences.count * 2 * S, T(0));
    for (size_t i = 0; i < sequences.count; ++i) {
      const auto order = visit(sequences.begin(i), sequences.end(i), d == 1);
      f.start[d].push_back(start_state(p, f.v, S, i, order, d == 1));
      scan(f.z[d], order, S, p.lambda_re, p.lambda_im, stride, f.start[d].back());
      for (size_t k = 0; k < S; ++k) {
        set_state(f.final_state[d], i, k, S,
                  order.empty() ? f.start[d].back()[k] : state_at(f.z[d], order.back(), k, S));
      }
    }
    const auto read = product(f.z[d], transpose(d == 0 ? p.V : p.V_reverse, D, 2 * S), n, 2 * S, D);
    for (size_t i = 0; i < n * D; ++i) f.y[i] += read[i];
  }
}

template <class T>
BlockTrace<T> block_forward(const BlockConfig& c, const PackedSequences& sequences,
                            const BlockValues<T>& p, const Values<T>& mask1, const Values<T>& mask2,
                            const LayerTwin<T>* layer = nullptr) {
  const size_t D = c.D, n = sequences.tokens();
  BlockTrace<T> f;
  std::vector<size_t> sequence_of(n);
  for (size_t i = 0; i < sequences.count; ++i) {
    for (size_t t = sequences.begin(i); t < sequences.end(i); ++t) sequence_of[t] = i;
  }
  const auto mask = [&](const Values<T>& m, size_t i) {
    return m.empty() ? T(1) : m[sequence_of[i / D] * D + i % D];
  };
  const Norm pre = c.prenorm ? c.norm : Norm::none;
  if (c.prenorm) {
    f.norm = normalise(p.x, n, D, pre, !c.batch_statistics, T(c.eps), p.norm_weight, p.norm_bias,
                       c.reduce);
  }
  const Values<T>& u = c.prenorm ? f.norm.out : p.x;
  if (layer != nullptr) {
    f.y = layer->forward(u);
  } else {
    diagonal_forward(c, sequences, p, u, f);
  }
  for (size_t i = 0; i < n * D; ++i) {
    f.y[i] += at_or(p.D, i % D, T(0)) * u[i] + at_or(p.e, i % D, T(0));
  }
  const bool bare = c.activation == Activation::none;
  const bool plain = !has_gate(c.activation);
  f.h = f.y;
  for (size_t i = 0; i < n * D; ++i) {
    const T y = f.y[i];
    f.h[i] = (bare ? y : curve_value(curve(c.activation), y)) * mask(plain ? mask2 : mask1, i);
  }
  f.out = c.residual ? p.x : Values<T>(n * D, T(0));
  if (plain) {
    for (size_t i = 0; i < n * D; ++i) f.out[i] += f.h[i];
  } else {
    f.s = product(f.h, transpose(p.gate_weight, D, D), n, D, D);
    for (size_t i = 0; i < n * D; ++i) f.s[i] = sigmoid(f.s[i] + at_or(p.gate_bias, i % D, T(0)));
    if (has_value(c.activation)) {
      f.p = product(f.h, transpose(p.value_weight, D, D), n, D, D);
      for (size_t i = 0; i < n * D; ++i) f.p[i] += at_or(p.value_bias, i % D, T(0));
    } else {
      f.p = gated(c.activation) == Gated::hidden ? f.h : f.y;
    }
    for (size_t i = 0; i < n * D; ++i) {
      f.out[i] += f.p[i] * f.s[i] * (drops_at_end(c.activation) ? mask(mask2, i) : T(1));
    }
  }
  if (!c.prenorm) {
    f.norm = normalise(f.out, n, D, c.norm, !c.batch_statistics, T(c.eps), p.norm_weight,
                       p.norm_bias, c.reduce);
    f.out = f.norm.out;
  }
  return f;
}

/// Its adjoint: the gradient of u by way of W, from that of y; those of the system into g.
template <class T>
Values<T> diagonal_backward(const BlockConfig& c, const PackedSequences& sequences,
                            const BlockValues<T>& p, const Values<T>& u, const BlockTrace<T>& f,
                            const Values<T>& dy, const Values<T>& dfinal,
                            const Values<T>& dfinal_reverse, BlockValues<T>& g) {
  const size_t D = c.D, S = c.S, n = sequences.tokens(), directions = c.bidirectional ? 2 : 1;
  const size_t stride = p.lambda_re.size() == S && n != 1 ? 0 : S;
  Values<T> dv(n * 2 * S, T(0));
  for (size_t d = 0; d < directions; ++d) {
    (d == 0 ? g.V : g.V_reverse) = product(transpose(dy, n, D), f.z[d], D, n, 2 * S);
    Values<T> dz = product(dy, d == 0 ? p.V : p.V_reverse, n, D, 2 * S);
    const Values<T>& last = d == 0 ? dfinal : dfinal_reverse;
    for (size_t i = 0; i < sequences.count; ++i) {
      const auto order = visit(sequences.begin(i), sequences.end(i), d == 1);
      std::vector<std::complex<T>> end(S);
      for (size_t k = 0; k < S && !last.empty(); ++k) end[k] = state_at(last, i, k, S);
      const auto start = scan_adjoint(dz, f.z[d], order, S, p.lambda_re, p.lambda_im, stride,
                                      f.start[d][i], end, g.lambda_re, g.lambda_im);
      Values<T>& given = d == 0 ? g.initial : g.initial_reverse;
      for (size_t k = 0; k < S; ++k) {
        if (!given.empty()) {
          set_state(given, i, k, S, start[k]);
        } else if (!p.start_re.empty() && !order.empty()) {
          const std::complex<T> factor(p.start_re[k], p.start_im[k]);
          const auto q = start[k] * std::conj(state_at(f.v, order[0], k, S));
          g.start_re[k] += q.real();
          g.start_im[k] += q.imag();
          set_state(dz, order[0], k, S,
                    state_at(dz, order[0], k, S) + start[k] * std::conj(factor));
        }
      }
    }
    for (size_t i = 0; i < dv.size(); ++i) dv[i] += dz[i];
  }
  for (size_t i = 0; i < dv.size(); ++i) {
    if (!g.b.empty()) g.b[i % (2 * S)] += dv[i];
  }
  g.W = product(transpose(dv, n, 2 * S), u, 2 * S, n, D);
  return product(dv, p.W, n, 2 * S, D);
}

/// Gradients of Σ dout⊙out + Σ dfinal⊙final.
template <class T>
BlockValues<T> block_backward(const BlockConfig& c, const PackedSequences& sequences,
                              const BlockValues<T>& p, const Values<T>& mask1,
                              const Values<T>& mask2, const BlockTrace<T>& f, Values<T> dout,
                              const Values<T>& dfinal, const Values<T>& dfinal_reverse,
                              const LayerTwin<T>* layer = nullptr) {
  const size_t D = c.D, n = sequences.tokens();
  BlockValues<T> g = p;
  g.each([](const char*, Values<T>& v) { std::fill(v.begin(), v.end(), T(0)); });
  std::vector<size_t> sequence_of(n);
  for (size_t i = 0; i < sequences.count; ++i) {
    for (size_t t = sequences.begin(i); t < sequences.end(i); ++t) sequence_of[t] = i;
  }
  const auto mask = [&](const Values<T>& m, size_t i) {
    return m.empty() ? T(1) : m[sequence_of[i / D] * D + i % D];
  };
  if (!c.prenorm) {
    dout = normalise_backward(f.norm, dout, n, D, c.norm, !c.batch_statistics, p.norm_weight,
                              g.norm_weight, g.norm_bias, c.reduce);
  }
  const Values<T>& u = c.prenorm ? f.norm.out : p.x;
  const bool bare = c.activation == Activation::none;
  const bool plain = !has_gate(c.activation);
  Values<T> dh(n * D, T(0)), dy(n * D, T(0));
  if (plain) {
    dh = dout;
  } else {
    Values<T> dp(n * D), ds(n * D);
    for (size_t i = 0; i < n * D; ++i) {
      const T o = dout[i] * (drops_at_end(c.activation) ? mask(mask2, i) : T(1));
      dp[i] = o * f.s[i];
      ds[i] = o * f.p[i] * f.s[i] * (T(1) - f.s[i]);
      if (!g.gate_bias.empty()) g.gate_bias[i % D] += ds[i];
    }
    g.gate_weight = product(transpose(ds, n, D), f.h, D, n, D);
    dh = product(ds, p.gate_weight, n, D, D);
    if (has_value(c.activation)) {
      g.value_weight = product(transpose(dp, n, D), f.h, D, n, D);
      const auto more = product(dp, p.value_weight, n, D, D);
      for (size_t i = 0; i < n * D; ++i) {
        dh[i] += more[i];
        if (!g.value_bias.empty()) g.value_bias[i % D] += dp[i];
      }
    } else {
      Values<T>& direct = gated(c.activation) == Gated::hidden ? dh : dy;
      for (size_t i = 0; i < n * D; ++i) direct[i] += dp[i];
    }
  }
  Values<T> du(n * D, T(0));
  for (size_t i = 0; i < n * D; ++i) {
    const T slope = bare ? T(1) : curve_slope(curve(c.activation), f.y[i]);
    dy[i] += dh[i] * mask(plain ? mask2 : mask1, i) * slope;
    if (!g.D.empty()) g.D[i % D] += dy[i] * u[i];
    if (!g.e.empty()) g.e[i % D] += dy[i];
    du[i] = dy[i] * at_or(p.D, i % D, T(0));
  }
  const Values<T> through =
      layer != nullptr ? layer->backward(u, dy)
                       : diagonal_backward(c, sequences, p, u, f, dy, dfinal, dfinal_reverse, g);
  for (size_t i = 0; i < n * D; ++i) du[i] += through[i];
  if (c.prenorm) {
    du = normalise_backward(f.norm, du, n, D, c.norm, !c.batch_statistics, p.norm_weight,
                            g.norm_weight, g.norm_bias, c.reduce);
  }
  for (size_t i = 0; i < n * D; ++i) g.x[i] = (c.residual ? dout[i] : T(0)) + du[i];
  return g;
}

}  // namespace rotrnn::kernels::reference
