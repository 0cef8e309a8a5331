#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rotrnn/kernels/block/plan.h"
#include "rotrnn/kernels/oracle/block_reference.h"
#include "rotrnn/kernels/recurrence/products.h"
#include "rotrnn/spec/description.h"

/// The plain twin of convolve.h and products.h: the sums as they are written.
namespace rotrnn::kernels::reference {

/// Parameters, inputs and their gradients alike. u [n, D], K and K_reverse [length, D], products
/// [orders, D]. Empty: absent.
template <class T>
struct ConvolutionValues {
  Values<T> u, K, K_reverse, products;

  /// Every tensor with its name.
  template <class F>
  void each(const F& f) {
    f("u", u), f("K", K), f("K_reverse", K_reverse), f("products", products);
  }
};

// ---------------------------------------------------------------- convolution

/// Adds Σ_{s≤t} K_{t-s} u_s to y_t; with `reverse` Σ_{s>t} K_{s-t-1} u_s.
template <class T>
void add_convolution(const PackedSequences& sequences, size_t D, const Values<T>& K, bool reverse,
                     const Values<T>& u, Values<T>& y) {
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t begin = sequences.begin(i), end = sequences.end(i);
    for (size_t t = begin; t < end; ++t) {
      for (size_t s = reverse ? t + 1 : begin; s < (reverse ? end : t + 1); ++s) {
        const size_t lag = reverse ? s - t - 1 : t - s;
        for (size_t d = 0; d < D; ++d) y[t * D + d] += K[lag * D + d] * u[s * D + d];
      }
    }
  }
}

/// Its adjoint; adds to both.
template <class T>
void add_convolution_backward(const PackedSequences& sequences, size_t D, const Values<T>& K,
                              bool reverse, const Values<T>& u, const Values<T>& dy, Values<T>& du,
                              Values<T>& dK) {
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t begin = sequences.begin(i), end = sequences.end(i);
    for (size_t t = begin; t < end; ++t) {
      for (size_t s = reverse ? t + 1 : begin; s < (reverse ? end : t + 1); ++s) {
        const size_t lag = reverse ? s - t - 1 : t - s;
        for (size_t d = 0; d < D; ++d) {
          du[s * D + d] += K[lag * D + d] * dy[t * D + d];
          dK[lag * D + d] += u[s * D + d] * dy[t * D + d];
        }
      }
    }
  }
}

// ---------------------------------------------------------------- products

/// All p-combinations of w numbers below `end`, in lexicographic order.
inline std::vector<std::vector<size_t>> combinations(size_t end, size_t w, size_t p) {
  std::vector<std::vector<size_t>> all;
  std::vector<size_t> chosen;
  const auto choose = [&](const auto& self, size_t from) -> void {
    if (chosen.size() == p) return all.push_back(chosen);
    for (size_t i = from; i < end; ++i) {
      chosen.push_back(i);
      self(self, i + 1);
      chosen.pop_back();
    }
  };
  choose(choose, end - w);
  return all;
}

/// f(token, order, the tokens of the product) for all products that are not 0.
template <class F>
void for_products(const PackedSequences& sequences, size_t orders, bool reference, const F& f) {
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t begin = sequences.begin(i), end = sequences.end(i);
    for (size_t p = 2; p <= orders + 1; ++p) {
      std::vector<std::vector<size_t>> all;
      for (size_t w = p; reference && all.size() < end - begin; ++w) {
        if (w >= end - begin) refuse_short_sequence(end - begin, p);
        all = combinations(end, w, p);
      }
      for (size_t t = begin; t < end; ++t) {
        if (reference) {
          f(t, p - 2, all[all.size() - 1 - (t - begin)]);
        } else if (t + 1 >= begin + p) {
          std::vector<size_t> tokens;
          for (size_t j = 0; j < p; ++j) tokens.push_back(t - j);
          f(t, p - 2, tokens);
        }
      }
    }
  }
}

/// Σ_p c_p·Π of p inputs, [n, D].
template <class T>
Values<T> product_terms(const PackedSequences& sequences, size_t D, bool reference,
                        const Values<T>& c, const Values<T>& u) {
  Values<T> terms(u.size(), T(0));
  for_products(sequences, c.size() / D, reference,
               [&](size_t t, size_t order, const std::vector<size_t>& tokens) {
                 for (size_t d = 0; d < D; ++d) {
                   T product = c[order * D + d];
                   for (const size_t s : tokens) product *= u[s * D + d];
                   terms[t * D + d] += product;
                 }
               });
  return terms;
}

/// Its adjoint; adds to both.
template <class T>
void product_terms_backward(const PackedSequences& sequences, size_t D, bool reference,
                            const Values<T>& c, const Values<T>& u, const Values<T>& dterms,
                            Values<T>& du, Values<T>& dc) {
  for_products(sequences, c.size() / D, reference,
               [&](size_t t, size_t order, const std::vector<size_t>& tokens) {
                 for (size_t d = 0; d < D; ++d) {
                   const T given = dterms[t * D + d], scale = c[order * D + d];
                   T product = given;
                   for (const size_t s : tokens) product *= u[s * D + d];
                   dc[order * D + d] += product;
                   for (const size_t s : tokens) {
                     T others = given * scale;
                     for (const size_t o : tokens) others *= o == s ? T(1) : u[o * D + d];
                     du[s * D + d] += others;
                   }
                 }
               });
}

// ---------------------------------------------------------------- both

/// y [n, D] without D⊙u.
template <class T>
Values<T> convolution_forward(const PackedSequences& sequences, size_t D, ProductUse kind,
                              const ConvolutionValues<T>& v) {
  Values<T> driven = v.u, y(v.u.size(), T(0));
  if (!v.products.empty()) {
    const Values<T> terms =
        product_terms(sequences, D, kind == ProductUse::reference, v.products, v.u);
    Values<T>& to = kind == ProductUse::inside ? driven : y;
    for (size_t i = 0; i < terms.size(); ++i) to[i] += terms[i];
  }
  add_convolution(sequences, D, v.K, false, driven, y);
  if (!v.K_reverse.empty()) add_convolution(sequences, D, v.K_reverse, true, v.u, y);
  return y;
}

/// Gradients of Σ dy⊙y.
template <class T>
ConvolutionValues<T> convolution_backward(const PackedSequences& sequences, size_t D,
                                          ProductUse kind, const ConvolutionValues<T>& v,
                                          const Values<T>& dy) {
  ConvolutionValues<T> g = v;
  g.each([](const char*, Values<T>& x) { std::fill(x.begin(), x.end(), T(0)); });
  const bool products = !v.products.empty(), inside = products && kind == ProductUse::inside;
  Values<T> driven = v.u, ddriven(v.u.size(), T(0));
  if (inside) {
    const Values<T> terms = product_terms(sequences, D, false, v.products, v.u);
    for (size_t i = 0; i < terms.size(); ++i) driven[i] += terms[i];
  }
  add_convolution_backward(sequences, D, v.K, false, driven, dy, ddriven, g.K);
  for (size_t i = 0; i < g.u.size(); ++i) g.u[i] += ddriven[i];
  if (products) {
    product_terms_backward(sequences, D, kind == ProductUse::reference, v.products, v.u,
                           inside ? ddriven : dy, g.u, g.products);
  }
  if (!v.K_reverse.empty()) {
    add_convolution_backward(sequences, D, v.K_reverse, true, v.u, dy, g.u, g.K_reverse);
  }
  return g;
}

}  // namespace rotrnn::kernels::reference
