#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace rotrnn::test {

/// `size` bytes of a number, the lowest first.
inline std::string little(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

/// A WAV file around the bytes of its samples; `format` is 1 for integers, 3 for floats.
inline std::string wav_bytes_of(const std::string& data, int format, int bits, int rate,
                                int channels) {
  const int frame = channels * bits / 8;
  const std::string header = "WAVEfmt " + little(16, 4) + little(format, 2) + little(channels, 2) +
                             little(rate, 4) + little(uint64_t(rate) * frame, 4) +
                             little(frame, 2) + little(bits, 2) + "data" + little(data.size(), 4);
  return "RIFF" + little(header.size() + data.size(), 4) + header + data;
}

/// A WAV file of 16 bits, as Speech Commands has them.
inline std::string wav_bytes(const std::vector<int16_t>& samples, int rate = 16000,
                             int channels = 1) {
  std::string data;
  for (const int16_t sample : samples) data += little(static_cast<uint16_t>(sample), 2);
  return wav_bytes_of(data, 1, 16, rate, channels);
}

/// A WAV file of 32-bit floats.
inline std::string wav_bytes(const std::vector<float>& samples, int rate = 16000,
                             int channels = 1) {
  std::string data(samples.size() * sizeof(float), '\0');
  std::memcpy(data.data(), samples.data(), data.size());
  return wav_bytes_of(data, 3, 32, rate, channels);
}

}  // namespace rotrnn::test
