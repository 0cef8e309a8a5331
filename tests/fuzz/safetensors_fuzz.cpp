// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address -I. tests/fuzz/safetensors_fuzz.cpp
//   rotrnn/io/formats/safetensors.cpp rotrnn/io/atomic_file.cpp -lfmt -o safetensors_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "rotrnn/io/formats/safetensors.h"

namespace {

// Reads every byte the file promises, so that a span outside the buffer meets the sanitizer.
void parse(std::string bytes) {
  const std::size_t size = bytes.size();
  try {
    const auto file = rotrnn::SafeTensorFile::from_bytes(std::move(bytes), "fuzz");
    std::size_t total = 0;
    unsigned sum = 0;
    for (const std::string& name : file.names()) {
      const rotrnn::SafeTensor& tensor = file.at(name);
      uint64_t count = rotrnn::dtype_size(tensor.dtype);
      for (const int64_t dimension : tensor.shape) count *= static_cast<uint64_t>(dimension);
      if (count != tensor.data.size()) std::abort();
      for (const std::byte value : tensor.data) sum += std::to_integer<unsigned>(value);
      total += tensor.data.size();
    }
    volatile unsigned used = sum;
    static_cast<void>(used);
    if (total > size) std::abort();
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  parse(input);
  // Again with a true length in front: mutations of the length alone would rarely reach the JSON.
  const uint64_t header = input.rfind('}') == std::string::npos ? size : input.rfind('}') + 1;
  std::string framed(sizeof header, '\0');
  std::memcpy(framed.data(), &header, sizeof header);
  parse(framed + input);
  return 0;
}
