#include "rotrnn/layers/state_space/planes.h"

namespace rotrnn {

void read_out(const Views<float>& p, double factor, Diagonal<double>& out) {
  const auto D = static_cast<size_t>(out.width), S = static_cast<size_t>(out.states);
  const auto write = [&](const float* re, const float* im, std::vector<double>& V) {
    for (size_t d = 0; d < D; ++d) {
      for (size_t j = 0; j < S; ++j) {
        V[d * 2 * S + j] = factor * static_cast<double>(re[d * S + j]);
        V[d * 2 * S + S + j] = -factor * static_cast<double>(im[d * S + j]);
      }
    }
  };
  write(p["C_re"], p["C_im"], out.V);
  if (out.bidirectional()) write(p["C_reverse_re"], p["C_reverse_im"], out.V_reverse);
  for (size_t d = 0; d < D; ++d) out.D[d] = static_cast<double>(p["D"][d]);
}

void read_out_backward(const Diagonal<double>& g, double factor, const Views<double>& out) {
  const auto D = static_cast<size_t>(g.width), S = static_cast<size_t>(g.states);
  const auto add = [&](const std::vector<double>& V, double* re, double* im) {
    for (size_t d = 0; d < D; ++d) {
      for (size_t j = 0; j < S; ++j) {
        re[d * S + j] += factor * V[d * 2 * S + j];
        im[d * S + j] -= factor * V[d * 2 * S + S + j];
      }
    }
  };
  add(g.V, out["C_re"], out["C_im"]);
  if (g.bidirectional()) add(g.V_reverse, out["C_reverse_re"], out["C_reverse_im"]);
  for (size_t d = 0; d < D; ++d) out["D"][d] += g.D[d];
}

}  // namespace rotrnn
