// Built and run by tests/fuzz/run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/data/retrieval.h"

// Any line is a pair with a label of 0 or 1 and the texts of its last two columns, or the one
// documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const rotrnn::RetrievalPair pair = rotrnn::parse_retrieval(line, {"fuzz", 1});
    if (std::count(line.begin(), line.end(), '\t') != 4) std::abort();
    if (!line.ends_with(pair.second) || line.find(pair.first) == line.npos) std::abort();
  } catch (const std::runtime_error&) {
    // The only way in which a bad line may end.
  }
  return 0;
}
