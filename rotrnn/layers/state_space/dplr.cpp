#include "rotrnn/layers/state_space/dplr.h"

#include <Eigen/LU>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/recurrence/dplr.h"
#include "rotrnn/layers/state_space/real_fft.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;
using Eigen::ArrayXcd;
using Eigen::MatrixXd;

// 2Re Σ_n, [D].
Eigen::ArrayXd twice_real_sum(const ComplexRows& x) {
  return 2 * x.real().rowwise().sum();
}

// Every row times a number of its own.
ComplexRows times_rows(const Eigen::ArrayXd& factor, const ComplexRows& x) {
  return x.colwise() * factor.cast<Complex>();
}

// 2/Δ - Λ.
ComplexRows inverse_resolvent(const DplrMatrix& s) {
  return (-s.Lambda).colwise() + (2 / s.step).cast<Complex>();
}

// ------------------------------------------------------------------------- powers of Ā, no adjoint

/// One channel.
struct Step {
  ArrayXcd lambda, F, G;  // [n]

  Step(const DiscreteDplr& s, int64_t d)
      : lambda(s.lambda.row(d).transpose()), F(s.F.row(d).transpose()), G(s.G.row(d).transpose()) {}

  /// C·Ā.
  ArrayXcd times(const ArrayXcd& C) const { return C * lambda - G * (2 * (C * F).real().sum()); }
};

// A complex row c as a real one for [Re x; Im x]: 2Re(c·x) = 2Re c·Re x - 2Im c·Im x.
Eigen::RowVectorXd to_real_row(const ArrayXcd& c) {
  Eigen::RowVectorXd row(2 * c.size());
  row << 2 * c.real().matrix().transpose(), -2 * c.imag().matrix().transpose();
  return row;
}

ArrayXcd to_complex_row(const Eigen::RowVectorXd& row) {
  const int64_t n = row.size() / 2;
  ArrayXcd c(n);
  for (int64_t i = 0; i < n; ++i) c[i] = Complex(row[i], -row[n + i]) / 2.0;
  return c;
}

// Ā^length on [Re x; Im x], [2n, 2n], by squaring.
MatrixXd dense_power(const Step& s, int64_t length) {
  const int64_t n = s.lambda.size();
  MatrixXd square(2 * n, 2 * n), power, next;
  for (int64_t i = 0; i < 2 * n; ++i) {
    square.row(i) = to_real_row(s.times(to_complex_row(Eigen::RowVectorXd::Unit(2 * n, i))));
  }
  for (int64_t left = length; left > 0; left /= 2) {
    if (left % 2 == 1) {
      if (power.size() == 0) {
        power = square;
      } else {
        next.noalias() = power * square;
        power.swap(next);
      }
    }
    if (left > 1) {
      next.noalias() = square * square;
      square.swap(next);
    }
  }
  return power;
}

// f(step, rows of this channel) for all channels, rows replaced by what it gives. Channels do not
// meet, so results do not depend on the threads.
template <class F>
std::vector<ComplexRows> for_channels(const DplrMatrix& system, const std::vector<ComplexRows>& C,
                                      const F& f) {
  const DiscreteDplr steps = discretise(system);
  std::vector<ComplexRows> out = C;
  std::atomic<int64_t> next{0};
  kernels::parallel_for(kernels::available_threads(), [&](int) {
    for (int64_t d; (d = next++) < system.width();) {
      std::vector<ArrayXcd> rows;
      rows.reserve(C.size());
      for (const ComplexRows& c : C) rows.emplace_back(c.row(d).transpose());
      f(Step(steps, d), rows);
      for (size_t i = 0; i < rows.size(); ++i) out[i].row(d) = rows[i].transpose();
    }
  });
  return out;
}

// ----------------------------------------------------------------------------- terms of the kernel

/// The places of the products v in a row of terms (kernels/recurrence/dplr.h): those of P P*, B P*,
/// P C̃, B C̃.
struct TermColumns {
  explicit TermColumns(const DplrVectors& p)
      : outputs(1 + p.inputs.size()), pairs(outputs + p.outputs.size()) {}
  size_t inputs = 1, outputs, pairs;
};

kernels::DplrSizes sizes_of(const DplrMatrix& s, const DplrVectors& vectors, int64_t length,
                            int threads) {
  kernels::DplrSizes sizes;
  sizes.D = static_cast<size_t>(s.width());
  sizes.n = static_cast<size_t>(s.states());
  sizes.length = static_cast<size_t>(length);
  sizes.inputs = vectors.inputs.size();
  sizes.outputs = vectors.outputs.size();
  sizes.pairs = vectors.pairs;
  sizes.threads = threads;
  return sizes;
}

// [D, n, terms]: |μ|², Re μ, and of every product v Re v and Re(v conj μ); μ = ΔΛ.
std::vector<double> terms_of(const DplrMatrix& s, const DplrVectors& vectors) {
  std::vector<double> terms;
  terms.reserve(static_cast<size_t>(s.Lambda.size()) * sizes_of(s, vectors, 1, 1).terms());
  for (int64_t d = 0; d < s.width(); ++d) {
    for (int64_t n = 0; n < s.states(); ++n) {
      const Complex mu = s.step[d] * s.Lambda(d, n), P = s.P(d, n);
      const auto add = [&](Complex v) {
        terms.push_back(v.real());
        terms.push_back(v.real() * mu.real() + v.imag() * mu.imag());
      };
      terms.push_back(std::norm(mu));
      terms.push_back(mu.real());
      add(std::norm(P));
      for (const ComplexRows& B : vectors.inputs) add(B(d, n) * std::conj(P));
      for (const ComplexRows& C : vectors.outputs) add(P * C(d, n));
      for (const auto& [b, c] : vectors.pairs)
        add(vectors.inputs[b](d, n) * vectors.outputs[c](d, n));
    }
  }
  return terms;
}

// The adjoint: from those of Re v and Re(v conj μ), g and h, ∂v = g + hμ and ∂μ = hv; of a product
// v = ab it is ∂a = conj(b)·∂v, and of conj(a) the conjugate of that.
void terms_backward(const DplrMatrix& s, const DplrVectors& vectors,
                    const std::vector<double>& dterms, DplrMatrix& ds, DplrVectors& dvectors) {
  const TermColumns at(vectors);
  const double* g = dterms.data();
  for (int64_t d = 0; d < s.width(); ++d) {
    for (int64_t n = 0; n < s.states(); ++n) {
      const Complex Lambda = s.Lambda(d, n), mu = s.step[d] * Lambda, P = s.P(d, n);
      Complex dmu = 2 * g[0] * mu + g[1], dP = 0;
      const auto dv = [&](size_t column, Complex v) {
        const double* pair = g + 2 + 2 * column;
        dmu += pair[1] * v;
        return pair[0] + pair[1] * mu;
      };
      dP += 2 * dv(0, std::norm(P)).real() * P;
      for (size_t i = 0; i < vectors.inputs.size(); ++i) {
        const Complex B = vectors.inputs[i](d, n), given = dv(at.inputs + i, B * std::conj(P));
        dvectors.inputs[i](d, n) += P * given;
        dP += B * std::conj(given);
      }
      for (size_t i = 0; i < vectors.outputs.size(); ++i) {
        const Complex C = vectors.outputs[i](d, n), given = dv(at.outputs + i, P * C);
        dvectors.outputs[i](d, n) += std::conj(P) * given;
        dP += std::conj(C) * given;
      }
      for (size_t i = 0; i < vectors.pairs.size(); ++i) {
        const auto [b, c] = vectors.pairs[i];
        const Complex B = vectors.inputs[b](d, n), C = vectors.outputs[c](d, n);
        const Complex given = dv(at.pairs + i, B * C);
        dvectors.inputs[b](d, n) += std::conj(C) * given;
        dvectors.outputs[c](d, n) += std::conj(B) * given;
      }
      ds.P(d, n) += dP;
      ds.Lambda(d, n) += s.step[d] * dmu;
      ds.step[d] += (std::conj(Lambda) * dmu).real();
      g += 2 + 2 * (at.pairs + vectors.pairs.size());
    }
  }
}

// f(begin, sizes of a block, its spectrum) for blocks of channels: all at once would be 16 bytes
// for every pair, channel and frequency. Blocks are of whole groups of rows of the FFT, so that
// results do not depend on them; there are enough for all threads.
template <class F>
void for_blocks(kernels::DplrSizes sizes, const F& f) {
  constexpr size_t kGroup = 8, kNumbers = size_t{1} << 20;
  const size_t row = 2 * sizes.pairs.size() * sizes.frequencies(), width = sizes.D;
  const size_t fit = std::max(kNumbers / row, kGroup * static_cast<size_t>(sizes.threads));
  const size_t count = std::min(width, (fit + kGroup - 1) / kGroup * kGroup);
  const auto spectrum = std::make_unique_for_overwrite<double[]>(count * row);
  for (size_t begin = 0; begin < width; begin += count) {
    sizes.D = std::min(count, width - begin);
    f(begin, sizes, spectrum.get());
  }
}

// Of Re K̂_j in K_0.
double weight_at(size_t j, size_t length) {
  return (j == 0 || 2 * j == length ? 1.0 : 2.0) / static_cast<double>(length);
}

}  // namespace

DiscreteDplr discretise(const DplrMatrix& s) {
  const ComplexRows D0 = inverse_resolvent(s).inverse(), Ph = s.P.conjugate();
  const Eigen::ArrayXd low = 4 / s.step / (1 + twice_real_sum(s.P * Ph * D0));
  return {times_rows(4 / s.step, D0) - 1.0, D0 * s.P, times_rows(low, Ph * D0)};
}

ComplexRows discrete_input(const DplrMatrix& s, const ComplexRows& B) {
  // G is 4/Δ times what reads the low rank.
  const DiscreteDplr step = discretise(s);
  return 2 * B / inverse_resolvent(s) - times_rows(twice_real_sum(step.G * B) * s.step / 2, step.F);
}

ComplexRows continuous_input(const DplrMatrix& s, const ComplexRows& B_bar) {
  const Eigen::ArrayXd read = twice_real_sum(s.P.conjugate() * B_bar);
  return (B_bar * inverse_resolvent(s) + times_rows(read, s.P)) / 2.0;
}

// B = ((2/Δ - Λ)·B̄ + σP)/2 with σ = 2Re Σ_n conj(P_n)·B̄_n, so ∂σ = ½Re Σ_n conj(P_n)·∂B_n, which
// gives 2∂σ·P to B̄ and 2∂σ·B̄ to P.
ComplexRows continuous_input_backward(const DplrMatrix& s, const ComplexRows& B_bar,
                                      const ComplexRows& g, DplrMatrix& out) {
  const Eigen::ArrayXd read = twice_real_sum(s.P.conjugate() * B_bar);
  const Eigen::ArrayXd dread = twice_real_sum(s.P.conjugate() * g) / 2;  // 2∂σ
  const ComplexRows product = B_bar.conjugate() * g / 2.0;
  out.Lambda -= product;
  out.step -= twice_real_sum(product) / s.step.square();
  out.P += times_rows(read / 2, g) + times_rows(dread, B_bar);
  return inverse_resolvent(s).conjugate() * g / 2.0 + times_rows(dread, s.P);
}

std::vector<ComplexRows> times_power(const DplrMatrix& s, const std::vector<ComplexRows>& C,
                                     int64_t length) {
  // Step by step, or by dense matrices: a step is some ten passes over n numbers, 3 ns each; a
  // product is 16n³ operations, twenty per ns.
  const auto n = static_cast<double>(s.states()), L = static_cast<double>(length);
  const bool steps = 45 * L < n * n * std::log2(L + 1);
  return for_channels(s, C, [&](const Step& step, std::vector<ArrayXcd>& rows) {
    const MatrixXd power = steps ? MatrixXd() : dense_power(step, length);
    for (ArrayXcd& row : rows) {
      if (steps) {
        for (int64_t i = 0; i < length; ++i) row = step.times(row);
      } else {
        row = to_complex_row(to_real_row(row) * power);
      }
    }
  });
}

std::vector<ComplexRows> plain_output(const DplrMatrix& s, const std::vector<ComplexRows>& C_tilde,
                                      int64_t length) {
  return for_channels(s, C_tilde, [&](const Step& step, std::vector<ArrayXcd>& rows) {
    MatrixXd rest = -dense_power(step, length).transpose();
    rest.diagonal().array() += 1;
    const Eigen::PartialPivLU<MatrixXd> solver(rest);
    for (ArrayXcd& row : rows) {
      row = to_complex_row(solver.solve(to_real_row(row).transpose()).transpose());
    }
  });
}

void dplr_kernels(const DplrMatrix& s, const DplrVectors& vectors, int64_t length, int threads,
                  const std::vector<DplrKernel>& out) {
  const kernels::DplrSizes all = sizes_of(s, vectors, length, threads);
  const std::vector<double> terms = terms_of(s, vectors);
  for_blocks(all, [&](size_t begin, const kernels::DplrSizes& sizes, double* spectrum) {
    kernels::dplr_forward(sizes, terms.data() + begin * sizes.n * sizes.terms(),
                          s.step.data() + begin, spectrum);
    for (size_t p = 0; p < out.size(); ++p) {
      const size_t J = sizes.frequencies();
      const double* X = spectrum + 2 * p * sizes.D * J;
      if (out[p].K != nullptr) {
        inverse_real_fft(threads, sizes.D, sizes.length, X, out[p].K + begin, all.D);
      }
      for (size_t d = 0; d < sizes.D && out[p].first != nullptr; ++d) {
        double sum = 0;
        for (size_t j = 0; j < J; ++j) sum += weight_at(j, sizes.length) * X[2 * (d * J + j)];
        out[p].first[begin + d] = sum;
      }
    }
  });
}

void dplr_kernels_backward(const DplrMatrix& s, const DplrVectors& vectors, int64_t length,
                           int threads, const std::vector<DplrKernelGradient>& gradients,
                           DplrMatrix& ds, DplrVectors& dvectors) {
  const kernels::DplrSizes all = sizes_of(s, vectors, length, threads);
  const std::vector<double> terms = terms_of(s, vectors);
  std::vector<double> dterms(terms.size()), dstep(all.D);
  for_blocks(all, [&](size_t begin, const kernels::DplrSizes& sizes, double* spectrum) {
    const size_t J = sizes.frequencies(), at = begin * sizes.n * sizes.terms();
    for (size_t p = 0; p < gradients.size(); ++p) {
      double* dX = spectrum + 2 * p * sizes.D * J;
      const DplrKernelGradient& g = gradients[p];
      if (g.K != nullptr) {
        inverse_real_fft_backward(threads, sizes.D, sizes.length, g.K + begin, all.D, dX);
      } else {
        std::fill_n(dX, 2 * sizes.D * J, 0.0);
      }
      for (size_t d = 0; d < sizes.D && g.first != nullptr; ++d) {
        for (size_t j = 0; j < J; ++j) {
          dX[2 * (d * J + j)] += weight_at(j, sizes.length) * g.first[begin + d];
        }
      }
    }
    kernels::dplr_backward(sizes, terms.data() + at, s.step.data() + begin, spectrum,
                           dterms.data() + at, dstep.data() + begin);
  });
  ds.step += Eigen::Map<const Eigen::ArrayXd>(dstep.data(), s.width());
  terms_backward(s, vectors, dterms, ds, dvectors);
}

}  // namespace rotrnn
