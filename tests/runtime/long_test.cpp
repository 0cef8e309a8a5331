// Millions of steps: the state stays finite and where float64 has it.

#include <cmath>
#include <cstring>
#include <map>

#include "rotrnn/runtime/stream.h"
#include "tests/runtime/cases.h"

namespace rotrnn::runtime::test {
namespace {

// The equations of docs/deploy.md as loops over double, for half_glu1, no norm, one channel.
class Plain {
 public:
  explicit Plain(const std::filesystem::path& file) {
    const std::string bytes = file_bytes(file);
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    const auto header = nlohmann::json::parse(bytes.substr(8, size));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
      std::vector<float> numbers((end - begin) / sizeof(float));
      std::memcpy(numbers.data(), bytes.data() + 8 + size + begin, end - begin);
      tensors_[name].assign(numbers.begin(), numbers.end());
    }
    const auto model =
        nlohmann::json::parse(header.at("__metadata__").at("model").get<std::string>());
    D_ = model.at("width");
    S_ = model.at("states");
    K_ = model.at("outputs");
    mean_ = model.at("preprocessing").at("mean")[0];
    deviation_ = model.at("preprocessing").at("deviation")[0];
    for (size_t i = 0; i < model.at("depth"); ++i) {
      const auto tensor = [&](const std::string& name) {
        return tensors_.at("blocks." + std::to_string(i) + "." + name).data();
      };
      blocks_.push_back({tensor("lambda_re"), tensor("lambda_im"), tensor("W"), tensor("V"),
                         tensor("D"), tensor("b"), tensor("e"), tensor("gate.weight"),
                         tensor("gate.bias"), std::vector<double>(2 * S_)});
    }
    x_.resize(D_);
    v_.resize(2 * S_);
    y_.resize(D_);
    h_.resize(D_);
  }

  void step(double value) {
    const double in = (value - mean_) / deviation_;
    const auto &weight = tensors_.at("encoder.weight"), &bias = tensors_.at("encoder.bias");
    for (size_t d = 0; d < D_; ++d) x_[d] = weight[d] * in + bias[d];
    for (Block& b : blocks_) {
      for (size_t s = 0; s < 2 * S_; ++s) v_[s] = b.b[s] + dot(b.W + s * D_, x_.data(), D_);
      for (size_t s = 0; s < S_; ++s) {
        const double re = b.state[s], im = b.state[S_ + s];
        b.state[s] = b.lambda_re[s] * re - b.lambda_im[s] * im + v_[s];
        b.state[S_ + s] = b.lambda_re[s] * im + b.lambda_im[s] * re + v_[S_ + s];
      }
      for (size_t d = 0; d < D_; ++d) {
        const double y = dot(b.V + d * 2 * S_, b.state.data(), 2 * S_) + b.D[d] * x_[d] + b.e[d];
        // 0.5·(1 + tanh a) is the logistic function of 2a.
        const double a = 2 * std::sqrt(2 / 3.14159265358979323846) * (y + 0.044715 * y * y * y);
        h_[d] = y / (1 + std::exp(-a));
      }
      for (size_t d = 0; d < D_; ++d) {
        const double gate = b.gate_bias[d] + dot(b.gate + d * D_, h_.data(), D_);
        y_[d] = h_[d] / (1 + std::exp(-gate));
      }
      for (size_t d = 0; d < D_; ++d) x_[d] += y_[d];
    }
  }

  // Of the last step.
  std::vector<double> logits() const {
    std::vector<double> out(K_);
    for (size_t k = 0; k < K_; ++k) {
      out[k] = tensors_.at("head.bias")[k] +
               dot(tensors_.at("head.weight").data() + k * D_, x_.data(), D_);
    }
    return out;
  }

 private:
  struct Block {
    const double *lambda_re, *lambda_im, *W, *V, *D, *b, *e, *gate, *gate_bias;
    std::vector<double> state;
  };

  static double dot(const double* a, const double* b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }

  std::map<std::string, std::vector<double>> tensors_;
  size_t D_ = 0, S_ = 0, K_ = 0;
  double mean_ = 0, deviation_ = 1;
  std::vector<Block> blocks_;
  std::vector<double> x_, v_, y_, h_;
};

TEST(LongStream, StaysWhereFloat64IsAfterMillionsOfSteps) {
  // |λ| up to 0.99999: a state sums 100,000 steps, each rounded at 6e-8 of it, whose errors are
  // random and add up to some √100,000·6e-8 = 2e-5 of the state; then two blocks follow.
  constexpr double kTolerance = 2e-5;
  const Case& c = case_named("millions");
#ifdef __SANITIZE_ADDRESS__
  const int64_t steps = 1'000'000;  // ten times slower there
#else
  const int64_t steps = 10'000'000;
#endif
  Stream stream(c.load());
  Plain plain(c.file);
  std::mt19937 engine(1);
  std::vector<float> chunk(1000);
  double most = 0, first = 0;
  for (int64_t t = 0; t < steps; t += std::ssize(chunk)) {
    for (float& value : chunk) {
      value = static_cast<float>(engine()) / 2147483648.0f - 1;
      plain.step(value);
    }
    stream.push(chunk);
    most = std::max(most, distance(stream.logits(), std::span<const double>(plain.logits())));
    if (t == 100'000) first = most;
  }
  EXPECT_EQ(stream.steps(), steps);
  std::printf("largest distance to float64: %.2g in %lld steps, %.2g in the first 100,000\n", most,
              static_cast<long long>(steps), first);
  EXPECT_LT(most, kTolerance);
  EXPECT_GT(most, 0);
}

}  // namespace
}  // namespace rotrnn::runtime::test
