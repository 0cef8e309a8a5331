// A trained model in a C++ program: numbers from standard input, a line for
// each change of the prediction.
//   seq 100 | build/release/bin/example_stream model.safetensors
#include <algorithm>
#include <exception>
#include <iostream>
#include <vector>

#include "rotrnn/runtime/stream.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: example_stream MODEL < NUMBERS\n";
    return 2;
  }
  try {
    const auto model = rotrnn::runtime::Model::load(argv[1]);
    const auto& info = model->info();
    rotrnn::runtime::Stream stream(model);
    std::vector<float> step;
    std::ptrdiff_t printed = -1;
    const auto print = [&](const char* when) {
      const auto answer = stream.answer();  // probabilities, or values in the units of the data
      const auto best = std::max_element(answer.begin(), answer.end()) - answer.begin();
      if (best == printed && *when == '\0') return;
      printed = best;
      std::cout << when << "step " << stream.steps() << ": "
                << (info.classifies ? info.classes[best] : "value") << " " << answer[best] << "\n";
    };
    for (float value; std::cin >> value;) {
      step.push_back(value);
      if (std::ssize(step) < info.inputs) continue;  // a step has a number for each channel
      stream.push(step);
      step.clear();
      print("");
    }
    print("end, ");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
