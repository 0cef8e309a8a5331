// tests/fuzz/run build/fuzz 600 wav_stream
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/io/formats/wav_stream.h"

static std::vector<float> read(std::string_view bytes, std::size_t piece, std::string& error) {
  std::vector<float> samples;
  rotrnn::WavStream wav("fuzz");
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      wav.feed(bytes.substr(at, piece), samples);
    }
    wav.end();
    if (wav.rate() < 1 || wav.channels() < 1) std::abort();
    if (samples.size() % static_cast<std::size_t>(wav.channels()) != 0) std::abort();
  } catch (const std::runtime_error& e) {
    error = e.what();  // the only way in which a bad file may end
  }
  return samples;
}

// Any bytes give samples or the one documented error, and the same however they are cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string whole_error;
  const auto whole = read(bytes, size + 1, whole_error);
  for (const std::size_t piece : {1, 7}) {
    std::string error;
    const auto cut = read(bytes, piece, error);
    if (error.empty() != whole_error.empty() || cut.size() != whole.size()) std::abort();
    if (!cut.empty() && std::memcmp(cut.data(), whole.data(), cut.size() * sizeof(float)) != 0) {
      std::abort();
    }
  }
  return 0;
}
