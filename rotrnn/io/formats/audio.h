#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rotrnn {

/// What to do with several channels.
enum class AudioChannels { keep, mean };

/// A recording. Samples are frame by frame, all channels of a frame together; one of the two.
struct Audio {
  int64_t sample_rate = 0, channels = 0, frames = 0;
  std::vector<int16_t> pcm;    // of files of 16 bits or less and of lossy ones, which are rounded
  std::vector<float> samples;  // of files of more bits, and means of channels
};

/// Makes the integers what floats would be, -1 to 1.
inline constexpr float kPcmScale = 1.0F / 32768;

/// Recordings of more samples than this are refused: what packs well may unpack to anything.
inline constexpr int64_t kMaxSamples = int64_t{1} << 28;

/// Decodes a file of any format that libsndfile reads (WAV, FLAC, OGG, MP3, AIFF, …), recognised by
/// its content. Another format, no samples, fewer than the header promises, and samples that are no
/// numbers throw std::runtime_error `name: …`.
Audio parse_audio(std::string_view bytes, const std::string& name,
                  AudioChannels channels = AudioChannels::keep);

/// Decodes a file.
Audio read_audio(const std::filesystem::path& file, AudioChannels channels = AudioChannels::keep);

}  // namespace rotrnn
