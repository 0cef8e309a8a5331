#include "rotrnn/kernels/maps/rotrnn_map.h"

#include <cmath>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/maps/expm.h"
#include "rotrnn/kernels/maps/head_size.h"

namespace rotrnn::kernels {
namespace {

/// The scalars of one head and their derivatives.
struct HeadScalars {
  double gamma, dgamma;   // γ, ∂γ/∂gamma_log
  double square;          // ‖B‖²
  double gain;            // ξ, α or 1
  double gain_by_log;     // ∂gain/∂gamma_log
  double gain_by_square;  // ∂gain/∂‖B‖²
  double radius;          // |λ|
  double rest;            // 1 - |λ|²
};

template <class Q>
HeadScalars make_head(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p, size_t h) {
  HeadScalars r{};
  const double rate = std::exp(static_cast<double>(p.gamma_log[h]));
  r.gamma = std::exp(-rate);
  r.dgamma = -r.gamma * rate;
  const double rest = -std::expm1(-2 * rate);  // 1 - γ² without cancellation
  const size_t count = s.head() * s.D;
  for (size_t i = 0; i < count; ++i) {
    const double b = static_cast<double>(p.B[h * count + i]);
    r.square += b * b;
  }
  r.gain = 1;
  r.radius = r.gamma;
  r.rest = rest;
  if (s.normalisation == Normalisation::xi) {
    r.gain = std::sqrt(s.c * rest / r.square);
    r.gain_by_log = r.gain * -r.gamma * r.dgamma / rest;
    r.gain_by_square = -0.5 * r.gain / r.square;
  } else if (s.normalisation == Normalisation::alpha) {
    r.gain = 1 / std::sqrt(s.c * r.gamma * r.gamma + r.square);
    const double cube = r.gain * r.gain * r.gain;
    r.gain_by_log = -cube * s.c * r.gamma * r.dgamma;
    r.gain_by_square = -0.5 * cube;
    r.radius = r.gain * r.gamma;
    r.rest = 1 - r.radius * r.radius;
  }
  return r;
}

/// start = w·e^{-iθ}, w = ((1-r²)^{-½} - 1)/r, written so that small r keeps its digits.
double start_size(const HeadScalars& head) {
  const double q = std::sqrt(head.rest);
  return head.radius / (q + q * q);
}

double start_slope(const HeadScalars& head) {  // ∂w/∂r
  const double q = std::sqrt(head.rest), r = head.radius, sum = q + q * q;
  return 1 / sum + r * r * (1 + 2 * q) / (q * sum * sum);
}

/// Where coordinate i of head h is among the 2S rows of W (columns of V).
size_t plane_index(const RotrnnMapSizes& s, size_t h, size_t i) {
  return (i % 2) * s.S() + h * s.pairs() + i / 2;
}

template <class Q>
double angle(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p, size_t h, size_t j) {
  if (j >= s.angles()) return 0;
  const double theta = static_cast<double>(p.theta[h * s.angles() + j]);
  return s.theta_log ? std::exp(theta) : theta;
}

template <class Q>
std::vector<double> skew(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p, size_t h) {
  const size_t d = s.head();
  const Q* M = p.M + h * d * d;
  std::vector<double> A(d * d);
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) {
      A[i * d + j] = static_cast<double>(M[i * d + j]) - static_cast<double>(M[j * d + i]);
    }
  }
  return A;
}

template <class T, class Q>
void write_lambda(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p,
                  const HeadScalars& head, size_t h, const DiagonalFields<T*>& out) {
  for (size_t j = 0; j < s.pairs(); ++j) {
    const double theta = angle(s, p, h, j);
    const size_t i = h * s.pairs() + j;
    out.lambda_re[i] = static_cast<T>(head.radius * std::cos(theta));
    out.lambda_im[i] = static_cast<T>(head.radius * std::sin(theta));
    if (!s.stationary) continue;
    out.start_re[i] = static_cast<T>(start_size(head) * std::cos(theta));
    out.start_im[i] = static_cast<T>(-start_size(head) * std::sin(theta));
  }
}

/// W of one head: gain·PᵀB, its rows sorted into planes.
template <class T, class Q>
void write_w(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p, double gain,
             const double* P, size_t h, T* W) {
  const size_t d = s.head(), D = s.D;
  const Q* B = p.B + h * d * D;
  std::vector<double> row(D);
  for (size_t i = 0; i < d; ++i) {
    row.assign(D, 0.0);
    for (size_t k = 0; k < d; ++k) {
      const double x = gain * P[k * d + i];
      for (size_t c = 0; c < D; ++c) row[c] += x * static_cast<double>(B[k * D + c]);
    }
    T* to = W + plane_index(s, h, i) * D;
    for (size_t c = 0; c < D; ++c) to[c] = static_cast<T>(row[c]);
  }
  if (d % 2 == 0) return;
  T* zero = W + plane_index(s, h, d) * D;
  for (size_t c = 0; c < D; ++c) zero[c] = T(0);
}

/// V of one head: C_h·P, its columns sorted into planes. Here and in v_backward, Size is a constant
/// for the usual sizes of a head: the inner loops are that short.
template <class T, class Q, class Size>
void write_v(const RotrnnMapSizes& s, Size size, const Q* C, const double* P, size_t h, T* V) {
  const size_t d = size, S = s.S(), S2 = 2 * S;
  std::vector<double> sum(d);
  for (size_t r = 0; r < s.D; ++r) {
    const Q* c = C + r * s.N + h * d;
    for (size_t i = 0; i < d; ++i) sum[i] = 0;
    for (size_t k = 0; k < d; ++k) {
      const double x = static_cast<double>(c[k]);
      for (size_t i = 0; i < d; ++i) sum[i] += x * P[k * d + i];
    }
    T* re = V + r * S2 + h * s.pairs();
    T* im = re + S;
    for (size_t i = 0; i + 1 < d; i += 2) {
      re[i / 2] = static_cast<T>(sum[i]);
      im[i / 2] = static_cast<T>(sum[i + 1]);
    }
    if (d % 2 == 0) continue;
    re[d / 2] = static_cast<T>(sum[d - 1]);
    im[d / 2] = T(0);
  }
}

/// Gradients of λ and start: to θ, and (returned) to |λ|.
template <class T, class Q>
double lambda_backward(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p,
                       const HeadScalars& head, size_t h, const DiagonalFields<const T*>& d,
                       const RotrnnParameters<T>& out) {
  double radius = 0;
  for (size_t j = 0; j < s.pairs(); ++j) {
    const size_t i = h * s.pairs() + j;
    const double c = std::cos(angle(s, p, h, j)), sn = std::sin(angle(s, p, h, j));
    double theta = 0;
    if (d.lambda_re != nullptr) {
      const double re = static_cast<double>(d.lambda_re[i]),
                   im = static_cast<double>(d.lambda_im[i]);
      radius += re * c + im * sn;
      theta += head.radius * (im * c - re * sn);
    }
    if (s.stationary && d.start_re != nullptr) {
      const double re = static_cast<double>(d.start_re[i]), im = static_cast<double>(d.start_im[i]);
      radius += start_slope(head) * (re * c - im * sn);
      theta += start_size(head) * (-re * sn - im * c);
    }
    if (j >= s.angles()) continue;
    const double chain = s.theta_log ? angle(s, p, h, j) : 1;
    out.theta[h * s.angles() + j] = static_cast<T>(theta * chain);
  }
  return radius;
}

/// Gradient of W: to B (as P·gain·dW, the norm of B comes later) and P; returns that of the gain.
template <class T, class Q>
double w_backward(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p, double gain,
                  const double* P, size_t h, const T* dW, std::vector<double>& dB, double* dP) {
  const size_t d = s.head(), D = s.D;
  const Q* B = p.B + h * d * D;
  double dgain = 0;
  for (size_t i = 0; i < d; ++i) {
    const T* g = dW + plane_index(s, h, i) * D;
    for (size_t k = 0; k < d; ++k) {
      const double x = gain * P[k * d + i];
      const Q* b = B + k * D;
      double* to = dB.data() + k * D;
      double parts[4] = {};  // four chains instead of one: the sum waits for itself otherwise
      size_t c = 0;
      for (; c + 4 <= D; c += 4) {
        for (size_t lane = 0; lane < 4; ++lane) {
          const double y = static_cast<double>(g[c + lane]);
          parts[lane] += static_cast<double>(b[c + lane]) * y;
          to[c + lane] += x * y;
        }
      }
      for (; c < D; ++c) {
        parts[0] += static_cast<double>(b[c]) * static_cast<double>(g[c]);
        to[c] += x * static_cast<double>(g[c]);
      }
      const double dot = (parts[0] + parts[1]) + (parts[2] + parts[3]);
      dP[k * d + i] += gain * dot;
      dgain += P[k * d + i] * dot;
    }
  }
  return dgain;
}

template <class T, class Q, class Size>
void v_backward(const RotrnnMapSizes& s, Size size, const Q* C, const double* P, size_t h,
                const T* dV, T* dC, double* dP) {
  const size_t d = size, S = s.S(), S2 = 2 * S;
  std::vector<double> memory(d * d + 2 * d);
  double* Pt = memory.data();  // transposed: all inner loops run along memory
  double *g = Pt + d * d, *dc = g + d;
  for (size_t i = 0; i < d * d; ++i) Pt[i] = P[i % d * d + i / d];
  for (size_t r = 0; r < s.D; ++r) {
    const Q* c = C + r * s.N + h * d;
    const T* re = dV + r * S2 + h * s.pairs();
    const T* im = re + S;
    for (size_t i = 0; i < d; ++i) {
      g[i] = static_cast<double>((i % 2 == 0 ? re : im)[i / 2]);
      dc[i] = 0;
    }
    for (size_t k = 0; k < d; ++k) {
      const double x = static_cast<double>(c[k]);
      for (size_t i = 0; i < d; ++i) dP[k * d + i] += x * g[i];
    }
    for (size_t i = 0; i < d; ++i) {
      for (size_t k = 0; k < d; ++k) dc[k] += g[i] * Pt[i * d + k];
    }
    for (size_t k = 0; k < d; ++k) dC[r * s.N + h * d + k] = static_cast<T>(dc[k]);
  }
}

template <class T, class Q>
void head_backward(const RotrnnMapSizes& s, const RotrnnParameters<const Q>& p, const double* P,
                   size_t h, const DiagonalFields<const T*>& d, const RotrnnParameters<T>& out) {
  const size_t dh = s.head(), count = dh * s.D;
  const HeadScalars head = make_head(s, p, h);
  const double dradius = lambda_backward(s, p, head, h, d, out);
  std::vector<double> dB(count, 0.0), dP(dh * dh, 0.0), dA(dh * dh);
  double dgain = w_backward(s, p, head.gain, P, h, d.W, dB, dP.data());
  with_size(dh, [&](auto size) {
    v_backward(s, size, p.C, P, h, d.V, out.C, dP.data());
    if (!s.bidirectional) return;
    v_backward(s, size, p.C_reverse, P, h, d.V_reverse, out.C_reverse, dP.data());
  });
  double dlog = 0;
  if (s.normalisation == Normalisation::alpha) {  // |λ| = αγ
    dgain += dradius * head.gamma;
    dlog += dradius * head.gain * head.dgamma;
  } else {
    dlog += dradius * head.dgamma;
  }
  dlog += dgain * head.gain_by_log;
  out.gamma_log[h] = static_cast<T>(dlog);
  const double pull = 2 * dgain * head.gain_by_square;
  for (size_t i = 0; i < count; ++i) {
    out.B[h * count + i] = static_cast<T>(dB[i] + pull * static_cast<double>(p.B[h * count + i]));
  }
  expm_skew_backward(skew(s, p, h).data(), dP.data(), dA.data(), dh);
  for (size_t i = 0; i < dh * dh; ++i) {
    out.M[h * dh * dh + i] = static_cast<T>(dA[i] - dA[i % dh * dh + i / dh]);
  }
}

template <class T, class Q>
void head_forward(const RotrnnMapSizes& s, const RotrnnForward<T, Q>& job, size_t h) {
  const auto& [p, out, P] = job;
  const size_t d = s.head();
  const HeadScalars head = make_head(s, p, h);
  double* rotation = P + h * d * d;
  expm_skew(skew(s, p, h).data(), rotation, d);
  write_lambda(s, p, head, h, out);
  write_w(s, p, head.gain, rotation, h, out.W);
  with_size(d, [&](auto size) {
    write_v(s, size, job.parameters.C, rotation, h, job.layer.V);
    if (!s.bidirectional) return;
    write_v(s, size, job.parameters.C_reverse, rotation, h, job.layer.V_reverse);
  });
}

/// function(layer, head) for all heads of all layers.
template <class Function>
void for_heads(const RotrnnMapSizes& s, size_t layers, Function function) {
  parallel_for(s.threads, [&](int thread) {
    const auto step = static_cast<size_t>(s.threads);
    for (size_t i = static_cast<size_t>(thread); i < layers * s.H; i += step) {
      function(i / s.H, i % s.H);
    }
  });
}

}  // namespace

template <class T, class Q>
void rotrnn_map_forward(const RotrnnMapSizes& s,
                        std::type_identity_t<std::span<const RotrnnForward<T, Q>>> layers) {
  for_heads(s, layers.size(), [&](size_t i, size_t h) { head_forward(s, layers[i], h); });
}

template <class T, class Q>
void rotrnn_map_backward(const RotrnnMapSizes& s,
                         std::type_identity_t<std::span<const RotrnnBackward<T, Q>>> layers) {
  for_heads(s, layers.size(), [&](size_t i, size_t h) {
    const auto& [parameters, P, dlayer, dparameters] = layers[i];
    head_backward(s, parameters, P + h * s.head() * s.head(), h, dlayer, dparameters);
  });
}

template void rotrnn_map_forward<float>(const RotrnnMapSizes&,
                                        std::span<const RotrnnForward<float>>);
template void rotrnn_map_forward<double>(const RotrnnMapSizes&,
                                         std::span<const RotrnnForward<double>>);
template void rotrnn_map_forward<double, float>(const RotrnnMapSizes&,
                                                std::span<const RotrnnForward<double, float>>);
template void rotrnn_map_backward<float>(const RotrnnMapSizes&,
                                         std::span<const RotrnnBackward<float>>);
template void rotrnn_map_backward<double>(const RotrnnMapSizes&,
                                          std::span<const RotrnnBackward<double>>);
template void rotrnn_map_backward<double, float>(const RotrnnMapSizes&,
                                                 std::span<const RotrnnBackward<double, float>>);

}  // namespace rotrnn::kernels
