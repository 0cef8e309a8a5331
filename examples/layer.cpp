// The layer in a LibTorch program: a ragged batch in, gradients out.
#include <iostream>

#include "rotrnn/layers/rotrnn.h"

int main() {
  rotrnn::RotRNN layer(rotrnn::RotRNNOptions{.width = 16, .state = 32, .heads = 8});
  const rotrnn::Packed u(torch::randn({1500, 16}), {0, 1000, 1500});  // sequences of 1,000 and 500
  const auto out = layer->forward(u);                                 // out.y is [1500, 16]
  out.y.square().mean().backward();
  std::cout << layer << "\n" << out.y.sizes() << " " << layer->theta.grad().sizes() << "\n";
}
