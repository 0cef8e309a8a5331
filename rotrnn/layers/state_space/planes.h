#pragma once

#include "rotrnn/layers/layer.h"

/// What the layers with a Diagonal share, and those with complex C: y = factor·Re(C x) + D ⊙ u as V
/// and D of a Diagonal.
namespace rotrnn {

/// A Diagonal of these sizes, its arrays ready to be written; memory is reused.
inline Diagonal<double>& make_diagonal(Description<double>& out, int64_t width, int64_t states,
                                       bool bidirectional) {
  if (!std::holds_alternative<Diagonal<double>>(out)) out = Diagonal<double>();
  auto& s = std::get<Diagonal<double>>(out);
  s.width = width;
  s.states = states;
  const auto D = static_cast<size_t>(width), S = static_cast<size_t>(states);
  s.lambda_re.resize(S);
  s.lambda_im.resize(S);
  s.W.resize(2 * S * D);
  s.V.resize(2 * S * D);
  s.V_reverse.resize(bidirectional ? 2 * S * D : 0);
  s.D.resize(D);
  return s;
}

/// One layer by itself through its map: what a stream runs.
inline Diagonal<double> mapped_diagonal(decltype(LayerKind::map) map, const LayerOptions& options,
                                        const LayerValues& values) {
  Description<double> mapped;
  MapTrace trace;
  map({options, {&values, 1}}, {&mapped, 1}, trace);
  return std::get<Diagonal<double>>(std::move(mapped));
}

/// V = factor·[Re C, -Im C], likewise V_reverse, and D, from C_re, C_im, C_reverse_re,
/// C_reverse_im and D.
void read_out(const Views<float>& parameters, double factor, Diagonal<double>& out);

/// Its adjoint; adds.
void read_out_backward(const Diagonal<double>& gradient, double factor, const Views<double>& out);

}  // namespace rotrnn
