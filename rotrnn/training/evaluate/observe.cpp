#include "rotrnn/training/evaluate/observe.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <stdexcept>

#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/tensors.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;
using Json = nlohmann::ordered_json;

constexpr size_t kMost = 128;  // eigenvalues of a block

// Six digits are more than any picture shows, and take a third of the bytes.
double rounded(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

// Evenly spaced numbers below n, at most `most`.
std::vector<size_t> some(size_t n, size_t most) {
  std::vector<size_t> out(std::min(n, most));
  for (size_t i = 0; i < out.size(); ++i) out[i] = i * n / out.size();
  return out;
}

Json layer_json(const std::vector<Complex>& values, size_t of) {
  Json re = Json::array(), im = Json::array();
  for (const size_t i : some(values.size(), kMost)) {
    re.push_back(rounded(values[i].real()));
    im.push_back(rounded(values[i].imag()));
  }
  return {{"re", re}, {"im", im}, {"of", of}};
}

// x ← λ ⊙ x + p·Re(q·x) is linear in [Re x; Im x] only: the eigenvalues of the matrix of that.
std::vector<Complex> joined_eigenvalues(const ChannelSteps& r, size_t channel) {
  const auto n = static_cast<Eigen::Index>(r.states);
  const size_t at = channel * static_cast<size_t>(r.states);
  const auto row = [&](const std::vector<double>& plane) {
    return Eigen::Map<const Eigen::VectorXd>(plane.data() + at, n);
  };
  const auto re = row(r.lambda_re), im = row(r.lambda_im), p_re = row(r.p_re), p_im = row(r.p_im);
  const auto q_re = row(r.q_re), q_im = row(r.q_im);
  Eigen::MatrixXd A(2 * n, 2 * n);
  A.topLeftCorner(n, n) = p_re * q_re.transpose();
  A.topRightCorner(n, n) = -p_re * q_im.transpose();
  A.bottomLeftCorner(n, n) = p_im * q_re.transpose();
  A.bottomRightCorner(n, n) = -p_im * q_im.transpose();
  A.topLeftCorner(n, n).diagonal() += re;
  A.topRightCorner(n, n).diagonal() -= im;
  A.bottomLeftCorner(n, n).diagonal() += im;
  A.bottomRightCorner(n, n).diagonal() += re;
  const Eigen::VectorXcd found = Eigen::EigenSolver<Eigen::MatrixXd>(A, false).eigenvalues();
  std::vector<Complex> out(found.begin(), found.end());
  // They come in any order; sorted by angle they keep their places over training.
  std::sort(out.begin(), out.end(),
            [](const Complex& a, const Complex& b) { return std::arg(a) < std::arg(b); });
  return out;
}

Json channel_json(const ChannelSteps& r) {
  const auto channels = static_cast<size_t>(r.width), n = static_cast<size_t>(r.states);
  const bool joined = !r.p_re.empty();
  const size_t each = joined ? 2 * n : n;  // eigenvalues of a channel
  std::vector<Complex> values;
  for (const size_t channel : some(channels, std::max<size_t>(1, kMost / each))) {
    if (joined) {
      const auto found = joined_eigenvalues(r, channel);
      values.insert(values.end(), found.begin(), found.end());
      continue;
    }
    for (size_t k = channel * n; k < (channel + 1) * n; ++k) {
      values.emplace_back(r.lambda_re[k], r.lambda_im[k]);
    }
  }
  return layer_json(values, channels * each);
}

Json layer_lambda(const Recurrence& recurrence) {
  if (const auto* channels = std::get_if<ChannelSteps>(&recurrence)) return channel_json(*channels);
  const auto& s = std::get<Diagonal<double>>(recurrence);
  std::vector<Complex> values;
  for (size_t i = 0; i < s.lambda_re.size(); ++i) {
    values.emplace_back(s.lambda_re[i], s.lambda_im[i]);
  }
  return layer_json(values, values.size());
}

}  // namespace

Json lambda_line(Network& network, int64_t step) {
  const ModelOptions& m = network.options();
  Json layers = Json::array();
  for (int64_t i = 0; i < m.depth; ++i) {
    const LayerValues values = layer_values(m, static_cast<size_t>(i), network.weights());
    try {
      layers.push_back(layer_lambda(layer_kind(m.layer).recurrence(m, values, false)));
    } catch (const std::invalid_argument&) {
      layers.push_back(nullptr);  // it has no recurrence
    }
  }
  return {{"step", step}, {"split", "lambda"}, {"layers", std::move(layers)}};
}

Json norms_line(Network& network, Workspace& workspace, const PackedInput& batch, int64_t step) {
  if (network.state_size() == 0) return nullptr;
  Json whole = Json::array(), head = Json::array();
  const Network::StateNorms norms = network.state_norms(batch, workspace);
  for (const std::vector<float>& block : norms.blocks) {
    double of_heads = 0, of_rows = 0;
    for (size_t t = 0; t < block.size(); t += norms.groups) {
      double square = 0;
      for (size_t g = 0; g < norms.groups; ++g) {
        const auto norm = static_cast<double>(block[t + g]);
        of_heads += norm;
        square += norm * norm;
      }
      of_rows += std::sqrt(square);
    }
    whole.push_back(of_rows * static_cast<double>(norms.groups) /
                    static_cast<double>(block.size()));
    head.push_back(of_heads / static_cast<double>(block.size()));
  }
  return {{"step", step}, {"split", "norms"}, {"whole", whole}, {"head", head}};
}

}  // namespace rotrnn
