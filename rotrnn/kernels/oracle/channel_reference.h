#pragma once

#include <algorithm>

#include "rotrnn/kernels/oracle/block_reference.h"
#include "rotrnn/kernels/recurrence/channel.h"

/// The plain twin of the channel kernel: the equations of channel.h, one state of one channel at a
/// time, with states kept and gradients by the usual adjoint.
namespace rotrnn::kernels::reference {

/// Parameters, inputs and their gradients alike. Empty: absent.
template <class T>
struct ChannelValues : ChannelFields<Values<T>> {
  Values<T> u, initial;
  Values<T> initial_reverse;  // the kernel has none: zero there

  /// Every tensor with its name.
  template <class F>
  void each(const F& f) {
    ChannelFields<Values<T>>::each([&](const char* name, Values<T>& v, auto) { f(name, v); });
    f("u", u), f("initial", initial), f("initial_reverse", initial_reverse);
  }
};

template <class T>
struct ChannelResult {
  Values<T> y, final_state, final_reverse;
};

/// One of a plane pair [N, D], or of states [sequences, 2·N·D].
template <class T>
std::complex<T> pair_at(const Values<T>& re, const Values<T>& im, size_t i) {
  return {re[i], im[i]};
}

/// The states of one recurrence along `order`: x[0] is the initial one, x[k+1] that of order[k].
template <class T>
std::vector<std::complex<T>> channel_states(const Values<T>& u, size_t D, size_t d,
                                            const std::vector<size_t>& order,
                                            std::complex<T> lambda, std::complex<T> initial) {
  std::vector<std::complex<T>> x{initial};
  for (size_t t : order) x.push_back(lambda * x.back() + u[t * D + d]);
  return x;
}

/// Calls f(sequence, state n, channel d) for all there are.
template <class F>
void for_channel_states(const PackedSequences& sequences, size_t D, size_t N, const F& f) {
  for (size_t i = 0; i < sequences.count; ++i) {
    for (size_t n = 0; n < N; ++n) {
      for (size_t d = 0; d < D; ++d) f(i, n, d);
    }
  }
}

template <class T>
ChannelResult<T> channel_forward(const PackedSequences& sequences, size_t D, size_t N,
                                 const ChannelValues<T>& v) {
  const size_t states = sequences.count * 2 * N * D;
  ChannelResult<T> r{Values<T>(v.u.size()), Values<T>(states), {}};
  if (!v.c_reverse_re.empty()) r.final_reverse.resize(states);
  for (size_t i = 0; i < v.u.size(); ++i) r.y[i] = at_or(v.D, i % D, T(0)) * v.u[i];
  const auto given = [&](const Values<T>& states, size_t i, size_t at) {
    return states.empty() ? std::complex<T>() : state_at(states, i, at, N * D);
  };
  for_channel_states(sequences, D, N, [&](size_t i, size_t n, size_t d) {
    const size_t at = n * D + d;
    const auto lambda = pair_at(v.lambda_re, v.lambda_im, at), c = pair_at(v.c_re, v.c_im, at);
    const auto order = visit(sequences.begin(i), sequences.end(i), false);
    const auto x = channel_states(v.u, D, d, order, lambda, given(v.initial, i, at));
    for (size_t k = 0; k < order.size(); ++k) r.y[order[k] * D + d] += (c * x[k + 1]).real();
    set_state(r.final_state, i, at, N * D, x.back());
    if (v.c_reverse_re.empty()) return;
    const auto other = pair_at(v.c_reverse_re, v.c_reverse_im, at);
    const auto back = visit(sequences.begin(i), sequences.end(i), true);
    const auto z = channel_states(v.u, D, d, back, lambda, given(v.initial_reverse, i, at));
    for (size_t k = 0; k < back.size(); ++k) r.y[back[k] * D + d] += (other * z[k]).real();
    set_state(r.final_reverse, i, at, N * D, z.back());
  });
  return r;
}

/// Gradients of Σ dy⊙y + Σ dfinal⊙final, of both directions.
template <class T>
ChannelValues<T> channel_backward(const PackedSequences& sequences, size_t D, size_t N,
                                  const ChannelValues<T>& v, const Values<T>& dy,
                                  const Values<T>& dfinal, const Values<T>& dfinal_reverse = {}) {
  ChannelValues<T> g = v;
  g.each([](const char*, Values<T>& x) { std::fill(x.begin(), x.end(), T(0)); });
  for (size_t i = 0; i < v.u.size(); ++i) {
    g.u[i] = at_or(v.D, i % D, T(0)) * dy[i];
    if (!g.D.empty()) g.D[i % D] += v.u[i] * dy[i];
  }
  const auto add = [](Values<T>& re, Values<T>& im, size_t at, std::complex<T> value) {
    re[at] += value.real();
    im[at] += value.imag();
  };
  const auto given = [&](const Values<T>& states, size_t i, size_t at) {
    return states.empty() ? std::complex<T>() : state_at(states, i, at, N * D);
  };
  for_channel_states(sequences, D, N, [&](size_t i, size_t n, size_t d) {
    const size_t at = n * D + d;
    const auto lambda = pair_at(v.lambda_re, v.lambda_im, at), c = pair_at(v.c_re, v.c_im, at);
    const auto order = visit(sequences.begin(i), sequences.end(i), false);
    const auto x = channel_states(v.u, D, d, order, lambda, given(v.initial, i, at));
    auto carry = given(dfinal, i, at);
    for (size_t k = order.size(); k-- > 0;) {
      const T e = dy[order[k] * D + d];
      const auto here = carry + std::conj(c) * e;
      add(g.c_re, g.c_im, at, e * std::conj(x[k + 1]));
      add(g.lambda_re, g.lambda_im, at, here * std::conj(x[k]));
      g.u[order[k] * D + d] += here.real();
      carry = std::conj(lambda) * here;
    }
    if (!g.initial.empty()) set_state(g.initial, i, at, N * D, carry);
    if (v.c_reverse_re.empty()) return;
    const auto other = pair_at(v.c_reverse_re, v.c_reverse_im, at);
    const auto back = visit(sequences.begin(i), sequences.end(i), true);
    const auto z = channel_states(v.u, D, d, back, lambda, given(v.initial_reverse, i, at));
    carry = given(dfinal_reverse, i, at);  // of x←_t, which y_{t-1} and x←_{t-1} read
    for (size_t k = back.size(); k-- > 0;) {
      const T e = dy[back[k] * D + d];
      add(g.c_reverse_re, g.c_reverse_im, at, e * std::conj(z[k]));
      add(g.lambda_re, g.lambda_im, at, carry * std::conj(z[k]));
      g.u[back[k] * D + d] += carry.real();
      carry = std::conj(lambda) * carry + std::conj(other) * e;
    }
    if (!g.initial_reverse.empty()) set_state(g.initial_reverse, i, at, N * D, carry);
  });
  return g;
}

// ---------------------------------------------------------------- trained models

/// The parameters of channel_step.h, row-major [D, N]; empty: absent.
template <class T>
struct ChannelStepValues {
  size_t D = 0, N = 0, degree = 1;
  bool inside = false;
  Values<T> lambda_re, lambda_im, c_re, c_im, c_reverse_re, c_reverse_im;
  Values<T> p_re, p_im, q_re, q_im, b_re, b_im, products;
};

/// y [steps, D] of one sequence u [steps, D], a channel at a time.
template <class T>
Values<T> channel_steps(const ChannelStepValues<T>& v, const Values<T>& u) {
  const size_t D = v.D, N = v.N, steps = u.size() / D;
  Values<T> y(u.size(), T(0));
  for (size_t d = 0; d < D; ++d) {
    const auto at = [&](const Values<T>& re, const Values<T>& im, size_t n, T other) {
      return re.empty() ? std::complex<T>(other) : pair_at(re, im, d * N + n);
    };
    // One step; the sum over all states comes before any of them goes on.
    std::vector<std::complex<T>> x(N);
    const auto step = [&](T w) {
      T joined = 0;
      for (size_t n = 0; n < N; ++n) joined += (at(v.q_re, v.q_im, n, 0) * x[n]).real();
      for (size_t n = 0; n < N; ++n) {
        x[n] = at(v.lambda_re, v.lambda_im, n, 0) * x[n] + at(v.p_re, v.p_im, n, 0) * joined +
               at(v.b_re, v.b_im, n, 1) * w;
      }
    };
    for (size_t t = 0; t < steps; ++t) {
      T terms = 0;
      for (size_t p = 2; p <= v.degree && p <= t + 1; ++p) {
        T product = 1;
        for (size_t j = 0; j < p; ++j) product *= u[(t - j) * D + d];
        terms += v.products[(p - 2) * D + d] * product;
      }
      step(u[t * D + d] + (v.inside ? terms : T(0)));
      if (!v.inside) y[t * D + d] += terms;
      for (size_t n = 0; n < N; ++n) y[t * D + d] += (at(v.c_re, v.c_im, n, 0) * x[n]).real();
    }
    x.assign(N, {});
    for (size_t t = steps; t-- > 0 && !v.c_reverse_re.empty();) {
      for (size_t n = 0; n < N; ++n) {
        y[t * D + d] += (at(v.c_reverse_re, v.c_reverse_im, n, 0) * x[n]).real();
      }
      step(u[t * D + d]);
    }
  }
  return y;
}

}  // namespace rotrnn::kernels::reference
