#include "rotrnn/kernels/gemm.h"

#include <cstdlib>
#include <stdexcept>

namespace rotrnn::kernels {

const Gemm& gemm(const std::string& name) {
  std::string wish = name;
  if (wish.empty()) {
    const char* environment = std::getenv("ROTRNN_GEMM");
    wish = environment == nullptr ? "hwy" : environment;
  }
  if (wish == "hwy") return gemm_hwy();
  if (wish == "xsmm" && gemm_xsmm() != nullptr) return *gemm_xsmm();
  throw std::invalid_argument("GEMM back end \"" + wish + "\" is not in this build; choose hwy" +
                              (gemm_xsmm() != nullptr ? " or xsmm" : ""));
}

std::vector<std::string> available_gemms() {
  std::vector<std::string> names = {"hwy"};
  if (gemm_xsmm() != nullptr) names.emplace_back("xsmm");
  return names;
}

size_t padded_stride(size_t n) {
  const size_t lines = (n + 15) / 16;
  return 16 * (lines % 2 == 0 ? lines + 1 : lines);  // an odd number of cache lines: all L1 sets
}

}  // namespace rotrnn::kernels
