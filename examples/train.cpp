// Training on your own arrays: which of three frequencies is in a noisy signal?
#include <cmath>
#include <cstdio>
#include <random>

#include "rotrnn/network/losses.h"
#include "rotrnn/network/network.h"
#include "rotrnn/training/optimiser.h"

int main() {
  rotrnn::ModelOptions model;  // the settings of [model] in a config
  model.width = 16, model.state = 32, model.rotrnn.heads = 8, model.depth = 2;
  const rotrnn::DataShape shape{rotrnn::InputKind::channels, 1, rotrnn::TargetKind::classes, 3};
  rotrnn::Network network(model, shape, /*seed=*/0);
  rotrnn::Workspace workspace;
  rotrnn::FlatArray gradients(network.layout());
  rotrnn::Optimiser optimiser(network.layout());
  std::mt19937 random(0);
  std::normal_distribution<float> noise(0, 0.5f);

  for (int step = 1; step <= 150; ++step) {
    std::vector<int64_t> offsets{0}, classes;  // a packed batch: sequences one after the other
    std::vector<float> values, dy;
    for (int i = 0; i < 32; ++i) {
      classes.push_back(random() % 3);
      const int length = 50 + static_cast<int>(random() % 100);  // ragged, without padding
      for (int t = 0; t < length; ++t) {
        values.push_back(std::sin(0.1f * t * (1 + classes.back())) + noise(random));
      }
      offsets.push_back(offsets.back() + length);
    }
    rotrnn::NetworkInput input{{offsets, {}, values}, rotrnn::Mode::train, /*backward=*/true};
    const auto y = network.forward(input, workspace);  // [32, 3]
    dy.resize(y.size());
    const double loss =
        rotrnn::loss_of({}, {classes.size(), classes.data()}, y.data(), 3, dy.data());
    network.backward({dy.data()}, workspace, gradients);
    optimiser.step(step, {.global = 5e-3, .recurrent = 1e-3, .weight_decay = 0.05}, gradients,
                   network.weights(), /*threads=*/2);
    if (step % 30 == 0) std::printf("step %3d  loss %.3f\n", step, loss);
  }
}
