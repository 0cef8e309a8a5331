#include "rotrnn/layers/rotrnn/coordinates.h"

#include "rotrnn/layers/rotrnn/rotrnn.h"

namespace rotrnn {
namespace {

// Visits all entries of P: f(entry, row of x, index of the column in z).
template <class F>
void for_entries(const LayerOptions& options, const LayerValues& values, const F& f) {
  const std::vector<double> P = rotrnn_rotations(options, values);
  const auto H = static_cast<size_t>(options.rotrnn.heads);
  const size_t dh = static_cast<size_t>(options.state) / H, pairs = (dh + 1) / 2, S = H * pairs;
  for (size_t i = 0; i < P.size(); ++i) {
    const size_t head = i / (dh * dh), column = i % dh;
    f(P[i], i / dh, column % 2 * S + head * pairs + column / 2);
  }
}

size_t planes_of(const LayerOptions& options) {
  return 2 * static_cast<size_t>(states_rotrnn(options).count);
}

}  // namespace

std::vector<double> rotrnn_rotations(const LayerOptions& options, const LayerValues& values) {
  Description<double> mapped;
  MapTrace P;  // which is what the map keeps
  map_rotrnn({options, {&values, 1}}, {&mapped, 1}, P);
  return P;
}

std::vector<double> rotrnn_hidden(const LayerOptions& options, const LayerValues& values,
                                  std::span<const double> z) {
  const size_t N = static_cast<size_t>(options.state), planes = planes_of(options);
  const size_t count = z.size() / planes;
  std::vector<double> x(count * N);
  for_entries(options, values, [&](double entry, size_t row, size_t column) {
    for (size_t i = 0; i < count; ++i) x[i * N + row] += entry * z[i * planes + column];
  });
  return x;
}

std::vector<double> rotrnn_folded(const LayerOptions& options, const LayerValues& values,
                                  std::span<const double> x) {
  const size_t N = static_cast<size_t>(options.state), planes = planes_of(options);
  const size_t count = x.size() / N;
  std::vector<double> z(count * planes);
  for_entries(options, values, [&](double entry, size_t row, size_t column) {
    for (size_t i = 0; i < count; ++i) z[i * planes + column] += entry * x[i * N + row];
  });
  return z;
}

}  // namespace rotrnn
