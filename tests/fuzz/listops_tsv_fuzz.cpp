#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include "rotrnn/data/tasks/listops/listops_tsv.h"

// Any bytes give examples that are well formed, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rotrnn;
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  ListOpsExamples examples;
  try {
    examples = parse_listops_tsv(input, "fuzz");
  } catch (const std::runtime_error&) {
    return 0;
  }
  if (examples.offsets.back() != static_cast<int64_t>(examples.tokens.size())) std::abort();
  for (int64_t i = 0; i < examples.size(); ++i) {
    const auto expression = examples.expression(i);
    const auto again = tokenize_listops(listops_source(expression), UnknownWords::reject);
    if (examples.labels[i] > 9 ||
        !std::equal(again.begin(), again.end(), expression.begin(), expression.end()))
      std::abort();
    evaluate_listops(expression);
  }
  return 0;
}
