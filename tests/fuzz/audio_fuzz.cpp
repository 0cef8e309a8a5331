// tests/fuzz/run build/fuzz 600 audio
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/io/formats/audio.h"

// Any bytes give frames of finite samples, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto channels : {rotrnn::AudioChannels::keep, rotrnn::AudioChannels::mean}) {
    try {
      const rotrnn::Audio audio = rotrnn::parse_audio(bytes, "fuzz", channels);
      const auto count = static_cast<std::size_t>(audio.frames * audio.channels);
      if (audio.frames < 1 || audio.channels < 1) std::abort();
      if (audio.pcm.size() + audio.samples.size() != count) std::abort();
      for (const float x : audio.samples) {
        if (!std::isfinite(x)) std::abort();
      }
    } catch (const std::runtime_error&) {
      // The only way in which a bad file may end.
    }
  }
  return 0;
}
