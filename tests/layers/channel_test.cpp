#include <gtest/gtest.h>

#include "rotrnn/layers/channel_fused.h"
#include "rotrnn/layers/s4d.h"
#include "tests/support/tensors.h"

// Channel systems by the kernel against the reference path in double.

namespace rotrnn {
namespace {

using test::relative_error;
using torch::Tensor;

struct Result {
  Tensor y, final;
  std::map<std::string, Tensor> gradients;
};

// Outputs and all gradients of a layer in its own precision; the weights of the loss are fixed.
Result run(S4DImpl& layer, const Packed& input, const Tensor& start, bool fast) {
  layer.zero_grad();
  const auto type = layer.D.scalar_type();
  const Tensor u = input.values.detach().to(type).clone().requires_grad_();
  States initial;
  if (start.defined()) initial.forward = start.detach().to(type).clone().requires_grad_();
  const SystemOutput out = layer.forward(input.with(u), initial, fast);
  torch::manual_seed(9);
  const Tensor wy = torch::randn(out.y.sizes(), torch::kFloat64);
  const Tensor wf = torch::randn(out.final.forward.sizes(), torch::kFloat64);
  ((out.y * wy.to(type)).sum() + (out.final.forward * wf.to(type)).sum()).backward();
  Result r{out.y.detach(), out.final.forward.detach(), {}};
  for (const auto& p : layer.named_parameters()) {
    if (p.value().grad().defined()) r.gradients[p.key()] = p.value().grad().clone();
  }
  r.gradients["u"] = u.grad().clone();
  if (start.defined()) r.gradients["initial"] = initial.forward.grad().clone();
  return r;
}

TEST(ChannelFused, EqualsTheReferenceInDouble) {
  int number = 0;
  for (const auto init : {S4DInit::lin, S4DInit::inv, S4DInit::legs}) {
    for (const bool bidirectional : {false, true}) {
      for (const bool with_state : {false, true}) {
        SCOPED_TRACE(std::to_string(++number));
        S4DOptions o;
        o.width = 11;
        o.state = 14;
        o.init = init;
        o.bidirectional = bidirectional;
        o.tied = number % 3 == 0;
        o.train_b = number % 4 != 0;
        o.discretisation = number % 2 == 0 ? Discretisation::zoh : Discretisation::bilinear;
        S4D narrow(o, 3), wide(o, 3);
        wide->to(torch::kFloat64);
        torch::manual_seed(2);
        const Packed u(torch::randn({240, 11}, torch::kFloat64),
                       std::vector<int64_t>{0, 130, 131, 240});
        const Tensor start = with_state ? torch::randn({3, 2 * 11 * 7}, torch::kFloat64) : Tensor();
        const Result exact = run(*wide, u, start, false), plain = run(*narrow, u, start, false),
                     fused = run(*narrow, u, start, true);
        ASSERT_EQ(exact.gradients.size(), fused.gradients.size());
        // Four times the error of float32 by the reference path, and a rounding of the largest.
        const auto near = [&](const Tensor& said, const Tensor& reference, const Tensor& truth,
                              const std::string& what) {
          EXPECT_LE(relative_error(said, truth), 4 * relative_error(reference, truth) + 1e-6)
              << what;
        };
        near(fused.y, plain.y, exact.y, "y");
        near(fused.final, plain.final, exact.final, "final");
        for (const auto& [name, gradient] : exact.gradients) {
          near(fused.gradients.at(name), plain.gradients.at(name), gradient, name);
        }
      }
    }
  }
}

TEST(ChannelFused, RefusesWhatDoesNotFit) {
  S4DOptions o;
  o.width = 3;
  o.state = 4;
  const S4D layer(o);
  const Packed wrong(torch::randn({5, 4}), std::vector<int64_t>{0, 5});
  EXPECT_THROW(layer->forward(wrong, {}, true), std::invalid_argument);
  const Packed u(torch::randn({5, 3}), std::vector<int64_t>{0, 5});
  States states;
  states.forward = torch::zeros({1, 5});
  EXPECT_THROW(layer->forward(u, states, true), std::invalid_argument);
  states.forward = Tensor();
  states.reverse = torch::zeros({1, 12});
  EXPECT_THROW(layer->forward(u, states, true), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn
