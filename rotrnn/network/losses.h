#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rotrnn {

/// What training minimises, of the outputs y [rows, outputs] of a network:
///
///     cross_entropy   -log softmax(y)_c                      one class c per row
///     binary          Σ_k c_k·BCE(y_k, t_k)/Σ_k c_k          several labels at once, t_k in [0, 1]
///     mean_square     mean_k (y_k - t_k)²
///     mean_absolute   mean_k |y_k - t_k|
///     huber           mean_k of e²/2 where |e| ≤ δ, else δ(|e| - δ/2), with e = y_k - t_k
///     quantile        mean of max(q·e, (q-1)·e), e = t - y, over the targets and, as the faster
///                     index of y, the quantiles
///
/// The loss of a batch is Σ_r w_r l_r/Σ_r w_r, the weight w_r of a row being that of its example
/// times, for classes, that of its class. It is 0 when all weights are.
enum class Loss { cross_entropy, binary, mean_square, mean_absolute, huber, quantile };

struct LossOptions {
  Loss loss = Loss::cross_entropy;
  double delta = 1;                        // huber
  std::vector<double> quantiles = {};      // quantile
  std::vector<double> class_weights = {};  // empty: all 1
};

/// What the rows should be; pointers that a loss does not use may be null.
struct Targets {
  size_t rows = 0;
  const int64_t* classes = nullptr;  // [rows]: cross_entropy
  const float* values = nullptr;     // [rows, targets]: all others
  const float* weights = nullptr;    // [rows]; null: all 1
};

/// The loss, and when `dy` is not null `scale` times its gradient, [rows, outputs].
/// std::invalid_argument for options or targets that do not fit the outputs.
/// T is float or double.
template <class T>
double loss_of(const LossOptions& options, const Targets& targets, const T* y, size_t outputs,
               T* dy = nullptr, double scale = 1);

/// Σ_r w_r, what the mean of a batch is divided by.
double weight_of(const LossOptions& options, const Targets& targets);

/// softmax of each row, in place.
void softmax(double* rows, size_t count, size_t outputs);

/// By the names above.
const char* loss_name(Loss loss);
Loss parse_loss(const std::string& name);
std::vector<std::string> loss_names();

}  // namespace rotrnn
