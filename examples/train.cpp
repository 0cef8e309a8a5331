// Training from C++: the quick start's config with other settings, a network that learns ListOps.
//   build/release/bin/example_train runs/example [STEPS]
#include <exception>
#include <iostream>

#include "rotrnn/training/trainer.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "use: example_train FOLDER [STEPS]\n";
    return 2;
  }
  try {
    rotrnn::TrainRequest request;
    request.config = rotrnn::default_config(
        {"task.train=4000", "task.validation=200", "task.test=400", "task.max_length=20",
         "model.width=32", "model.state=32", "model.heads=8", "model.depth=2", "training.batch=64",
         "training.evaluate_every=100"});
    request.config.training.steps = argc > 2 ? std::stoll(argv[2]) : 200;
    request.out = argv[1];
    rotrnn::TrainObserver observer;
    observer.evaluation = [](const rotrnn::EvaluationReport& report) {
      std::cout << "step " << report.step << ": loss " << report.scores.loss << ", accuracy "
                << report.scores.accuracy << "\n";
    };
    const rotrnn::TrainOutcome outcome = rotrnn::train(request, observer);
    std::cout << outcome.parameters << " parameters, test accuracy " << outcome.test.accuracy
              << ", the commonest class alone " << outcome.majority.share << "\n"
              << "next: rotrnn export " << argv[1] << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
