#include "rotrnn/layers/liquid_s4/liquid_s4.h"

#include <cmath>
#include <stdexcept>

#include "rotrnn/layers/s4/s4.h"
#include "rotrnn/layers/s4/system.h"
#include "rotrnn/layers/state_space/discretise.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;
using Eigen::ArrayXd;

/// b and s, and the powers of b whose sums with C are asked for.
struct LiquidInputs {
  ComplexRows b;                    // [D, n]
  ArrayXd s;                        // [D]
  std::vector<ComplexRows> powers;  // b², … or b alone; none in form kb
};

LiquidInputs inputs_of(const LayerOptions& o, const S4System& system) {
  const DplrMatrix& dplr = system.dplr;
  LiquidInputs in;
  in.b = system.vectors.inputs[0];
  for (int64_t d = 0; d < dplr.width(); ++d) {
    for (int64_t n = 0; n < dplr.states(); ++n) {
      in.b(d, n) *= discretise(dplr.Lambda(d, n), dplr.step[d], Discretisation::bilinear).scale;
    }
  }
  in.s = 2 * in.b.real().rowwise().sum();
  if (o.liquid_s4.form == LiquidForm::kb) return in;
  if (o.liquid_s4.coefficient == LiquidCoefficient::reference) {
    in.powers.push_back(in.b);
    return in;
  }
  for (int64_t p = 2; p <= o.liquid_s4.degree; ++p) {
    in.powers.push_back(in.powers.empty() ? in.b * in.b : in.powers.back() * in.b);
  }
  return in;
}

// With w_p = w_{p-1}·b, w_1 = b: ∂w_{p-1} += conj(b)·∂w_p and ∂b += conj(w_{p-1})·∂w_p. Then b is
// B times a scale of Λ and Δ.
void inputs_backward(const LayerOptions& o, const S4System& system, const LiquidInputs& in,
                     std::vector<ComplexRows> dpowers, const ArrayXd& ds, DplrMatrix& ddplr,
                     DplrVectors& dvectors) {
  ComplexRows db = ComplexRows::Zero(in.b.rows(), in.b.cols());
  db.colwise() += (2 * ds).cast<Complex>();
  if (o.liquid_s4.coefficient == LiquidCoefficient::reference && !dpowers.empty()) {
    db += dpowers[0];
  } else {
    for (size_t i = dpowers.size(); i-- > 0;) {
      const ComplexRows below = in.b.conjugate() * dpowers[i];
      db += (i > 0 ? in.powers[i - 1] : in.b).conjugate() * dpowers[i];
      (i > 0 ? dpowers[i - 1] : db) += below;
    }
  }
  const DplrMatrix& dplr = system.dplr;
  for (int64_t d = 0; d < dplr.width(); ++d) {
    for (int64_t n = 0; n < dplr.states(); ++n) {
      const Complex Lambda = dplr.Lambda(d, n), B = system.vectors.inputs[0](d, n);
      const double step = dplr.step[d];
      const Complex scale = discretise(Lambda, step, Discretisation::bilinear).scale;
      dvectors.inputs[0](d, n) += std::conj(scale) * db(d, n);
      const DiscretisedGradient g =
          discretise_backward(Lambda, step, Discretisation::bilinear, {0, std::conj(B) * db(d, n)});
      ddplr.Lambda(d, n) += g.Lambda;
      ddplr.step[d] += g.step;
    }
  }
}

// 2Re Σ_n C_n w_n is K_0 of the system whose B̄ is w: so C itself, which would take dense matrices,
// is not needed.
DplrVectors all_vectors(const S4System& system, const LiquidInputs& in) {
  DplrVectors vectors = system.vectors;
  for (const ComplexRows& w : in.powers) {
    vectors.pairs.emplace_back(vectors.inputs.size(), 0);
    vectors.inputs.push_back(continuous_input(system.dplr, w));
  }
  return vectors;
}

// Of s in c_p of the authors' code.
int64_t exponent(int64_t p) {
  return (int64_t{1} << (p - 1)) - 1;
}

// c_p [orders, D] from s and the sums with C [powers, D].
void coefficients(const LayerOptions& o, const ArrayXd& s, const double* sums, double* out) {
  const int64_t width = s.size();
  for (int64_t p = 2; p <= o.liquid_s4.degree; ++p) {
    for (int64_t d = 0; d < width; ++d) {
      double& c = out[(p - 2) * width + d];
      if (o.liquid_s4.form == LiquidForm::kb) {
        c = std::pow(s[d], static_cast<double>(p - 1));
      } else if (o.liquid_s4.coefficient == LiquidCoefficient::power) {
        c = sums[(p - 2) * width + d];
      } else {
        c = std::pow(s[d], static_cast<double>(exponent(p))) * sums[d];
      }
    }
  }
}

// ∂(s^e) = e·s^(e-1)·∂s.
void coefficients_backward(const LayerOptions& o, const ArrayXd& s, const double* sums,
                           const double* gradient, ArrayXd& ds, std::vector<double>& dsums) {
  const int64_t width = s.size();
  for (int64_t p = 2; p <= o.liquid_s4.degree; ++p) {
    for (int64_t d = 0; d < width; ++d) {
      const double g = gradient[(p - 2) * width + d];
      if (o.liquid_s4.form == LiquidForm::kb) {
        const auto e = static_cast<double>(p - 1);
        ds[d] += e * std::pow(s[d], e - 1) * g;
      } else if (o.liquid_s4.coefficient == LiquidCoefficient::power) {
        dsums[static_cast<size_t>((p - 2) * width + d)] += g;
      } else {
        const auto e = static_cast<double>(exponent(p));
        ds[d] += e * std::pow(s[d], e - 1) * sums[d] * g;
        dsums[static_cast<size_t>(d)] += std::pow(s[d], e) * g;
      }
    }
  }
}

ProductUse kind_of(const LayerOptions& o) {
  if (o.liquid_s4.form == LiquidForm::kb) return ProductUse::inside;
  return o.liquid_s4.mode == LiquidMode::reference ? ProductUse::reference : ProductUse::outside;
}

}  // namespace

TensorSpecs liquid_s4_tensors(const LayerOptions& o) {
  return s4_tensors(o);
}

void draw_liquid_s4(const LayerOptions& o, uint64_t seed, uint64_t stream, const LayerValues& out) {
  draw_s4_values(o, seed, stream, out, /*clip=*/false);
}

void prepare_liquid_s4(const LayerOptions& o, const LayerValues& values, int64_t longest) {
  prepare_s4(o, values, longest);
}

// The trace: the sums with C [powers, D], layer after layer.
void map_liquid_s4(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace) {
  const LayerOptions& o = request.options;
  trace.clear();
  for (size_t i = 0; i < out.size(); ++i) {
    Channel<double>& channel = s4_channel(o, request.layers[i], out[i]);
    channel.orders = o.liquid_s4.degree - 1;
    channel.kind = kind_of(o);
    channel.products.resize(static_cast<size_t>(channel.orders * channel.width));
    const S4System s = s4_system(o, request.layers[i]);
    const LiquidInputs in = inputs_of(o, s);
    const auto width = static_cast<size_t>(channel.width);
    const size_t at = trace.size();
    trace.resize(at + in.powers.size() * width);
    std::vector<DplrKernel> kernels = s4_kernels(channel);
    for (size_t k = 0; k < in.powers.size(); ++k) {
      kernels.push_back({.first = trace.data() + at + k * width});
    }
    dplr_kernels(s.dplr, all_vectors(s, in), s.length, request.threads, kernels);
    coefficients(o, in.s, trace.data() + at, channel.products.data());
  }
}

void map_liquid_s4_backward(const MapRequest& request, const MapTrace& trace,
                            std::span<const Description<double>> gradients,
                            std::span<const Views<double>> out) {
  const LayerOptions& o = request.options;
  if (!o.liquid_s4.train_liquid) return map_s4_backward(request, trace, gradients, out);
  const double* sums = trace.data();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto& gradient = std::get<Channel<double>>(gradients[i]);
    const S4System s = s4_system(o, request.layers[i]);
    const LiquidInputs in = inputs_of(o, s);
    const DplrVectors vectors = all_vectors(s, in);
    DplrMatrix ddplr = DplrMatrix::zeros(s.dplr.width(), s.dplr.states());
    DplrVectors dvectors = zero_vectors(vectors);
    const auto width = static_cast<size_t>(s.dplr.width());
    ArrayXd ds = ArrayXd::Zero(s.dplr.width());
    std::vector<double> dsums(in.powers.size() * width);
    coefficients_backward(o, in.s, sums, gradient.products.data(), ds, dsums);
    std::vector<DplrKernelGradient> kernels = s4_kernel_gradients(gradient);
    for (size_t k = 0; k < in.powers.size(); ++k) {
      kernels.push_back({.first = dsums.data() + k * width});
    }
    dplr_kernels_backward(s.dplr, vectors, s.length, request.threads, kernels, ddplr, dvectors);
    std::vector<ComplexRows> dpowers;
    for (size_t k = 0; k < in.powers.size(); ++k) {
      dpowers.push_back(
          continuous_input_backward(s.dplr, in.powers[k], dvectors.inputs[1 + k], ddplr));
    }
    inputs_backward(o, s, in, std::move(dpowers), ds, ddplr, dvectors);
    s4_system_backward(o, s, ddplr, dvectors, out[i]);
    Eigen::Map<ArrayXd>(out[i]["D"], s.dplr.width()) +=
        Eigen::Map<const ArrayXd>(gradient.D.data(), s.dplr.width());
    sums += in.powers.size() * width;
  }
}

Recurrence recurrence_liquid_s4(const LayerOptions& o, const LayerValues& values, bool outputs) {
  if (o.liquid_s4.mode == LiquidMode::reference) {
    throw std::invalid_argument(
        "Liquid-S4 in mode \"reference\" is not causal: it has no step and is not exported; train "
        "it with model.liquid_s4.mode = \"causal\"");
  }
  auto r = std::get<ChannelSteps>(recurrence_s4(o, values, outputs));
  if (!outputs) return r;
  const LiquidInputs in = inputs_of(o, s4_system(o, values));
  // r has 2C, so these sums need no factor 2.
  const auto n = static_cast<size_t>(r.states);
  std::vector<double> sums;
  for (const ComplexRows& w : in.powers) {
    for (size_t d = 0; d < static_cast<size_t>(r.width); ++d) {
      double sum = 0;
      for (size_t k = d * n; k < (d + 1) * n; ++k) {
        sum += r.c_re[k] * w.data()[k].real() - r.c_im[k] * w.data()[k].imag();
      }
      sums.push_back(sum);
    }
  }
  r.orders = o.liquid_s4.degree - 1;
  r.liquid.resize(static_cast<size_t>(r.orders * r.width));
  r.liquid_inside = o.liquid_s4.form == LiquidForm::kb;
  coefficients(o, in.s, sums.data(), r.liquid.data());
  return r;
}

LayerStates states_liquid_s4(const LayerOptions& o) {
  return states_s4(o);
}

}  // namespace rotrnn
