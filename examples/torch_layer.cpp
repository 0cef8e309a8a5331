// A recurrent layer among modules of LibTorch: a ragged batch in, an optimiser of torch.
#include <iostream>

#include "rotrnn/torch/modules.h"

int main() {
  rotrnn::LayerOptions options;
  options.layer = "s5", options.width = 16, options.state = 32;
  rotrnn::nn::Layer layer(options, /*seed=*/0);
  torch::nn::Linear head(16, 1);

  std::vector<torch::optim::OptimizerParamGroup> groups =
      layer->adamw_groups({.global = 1e-3, .recurrent = 1e-3, .weight_decay = 0.05});
  groups.emplace_back(head->parameters());
  torch::optim::AdamW adamw(groups, torch::optim::AdamWOptions(1e-3));

  const torch::Tensor u = torch::randn({1500, 16});
  const std::vector<int64_t> offsets{0, 1000, 1500};  // sequences of 1,000 and 500 steps
  for (int step = 0; step < 3; ++step) {
    adamw.zero_grad();
    const torch::Tensor y = head->forward(layer->forward(u, offsets));  // [1500, 1]
    const torch::Tensor loss = (y - u.mean(1, true)).square().mean();
    loss.backward();
    adamw.step();
    std::cout << y.sizes() << " loss " << loss.item<float>() << "\n";
  }
}
