#include "rotrnn/io/formats/audio.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

// Bytes in memory as libsndfile wants to see a file.
struct Memory {
  std::string_view bytes;
  sf_count_t at = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }

  static Memory& of(void* self) { return *static_cast<Memory*>(self); }

  static sf_count_t length(void* self) { return of(self).size(); }

  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    Memory& m = of(self);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? m.at : m.size();
    sf_count_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return -1;
    return m.at = to;
  }

  static sf_count_t read(void* out, sf_count_t count, void* self) {
    Memory& m = of(self);
    const sf_count_t there =
        std::clamp<sf_count_t>(m.size() - m.at, 0, std::max<sf_count_t>(count, 0));
    if (there > 0) std::memcpy(out, m.bytes.data() + m.at, static_cast<std::size_t>(there));
    m.at += there;
    return there;
  }

  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }

  static sf_count_t tell(void* self) { return of(self).at; }
};

uint32_t little_endian(std::string_view bytes, std::size_t at) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

// libsndfile silently takes what is there of a WAV file that is cut off.
void check_wav_length(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 12 || !bytes.starts_with("RIFF") || bytes.substr(8, 4) != "WAVE") return;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const uint64_t size = little_endian(bytes, at + 4), there = bytes.size() - at - 8;
    if (bytes.substr(at, 4) == "data") {
      // Programs that write to a pipe do not know the size.
      const bool unknown = size >= 0x7fffff00U;
      if (size > there && !unknown) {
        fail(name, fmt::format("offset {}: the header promises {} bytes of sound, {} follow; the "
                               "file is cut off or damaged",
                               at + 4, size, there));
      }
      return;
    }
    if (size > there) return;
    at += 8 + size + size % 2;
  }
}

bool is_16_bit(int format) {
  return (format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16;
}

// Formats with more than 16 bits of precision.
bool is_deep(int format) {
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT:
    case SF_FORMAT_DOUBLE:
    case SF_FORMAT_ALAC_20:
    case SF_FORMAT_ALAC_24:
    case SF_FORMAT_ALAC_32:
      return true;
    default:
      return false;
  }
}

int64_t read_frames(SNDFILE* file, int16_t* out, int64_t frames) {
  return sf_readf_short(file, out, frames);
}

int64_t read_frames(SNDFILE* file, float* out, int64_t frames) {
  return sf_readf_float(file, out, frames);
}

// In pieces: what a header says of the length is no reason to take memory.
template <typename Sample>
int64_t read_all(SNDFILE* file, int64_t channels, const std::string& name,
                 std::vector<Sample>& out) {
  const int64_t first = 1 + (1 << 14) / channels;
  int64_t frames = 0;
  for (;;) {
    const int64_t wanted = std::max(first, frames);
    if (frames * channels > kMaxSamples) {
      fail(name,
           fmt::format("more than {} samples; cut the recording into shorter ones", kMaxSamples));
    }
    out.resize(static_cast<std::size_t>((frames + wanted) * channels));
    const int64_t count = read_frames(file, out.data() + frames * channels, wanted);
    frames += std::max<int64_t>(count, 0);
    if (count < wanted) break;
  }
  out.resize(static_cast<std::size_t>(frames * channels));
  return frames;
}

void check_finite(const Audio& audio, const std::string& name) {
  const auto bad = std::find_if_not(audio.samples.begin(), audio.samples.end(),
                                    [](float x) { return std::isfinite(x); });
  if (bad == audio.samples.end()) return;
  fail(name, fmt::format("frame {}: the sample is {}; the file is damaged",
                         (bad - audio.samples.begin()) / audio.channels, *bad));
}

// So that a set of sounds in several formats can be one set. Exact for 8 bits and companded ones.
void to_16_bits(Audio& audio) {
  audio.pcm.reserve(audio.samples.size());
  for (const float x : audio.samples) {
    audio.pcm.push_back(
        static_cast<int16_t>(std::clamp(std::nearbyint(x / kPcmScale), -32768.0F, 32767.0F)));
  }
  audio.samples = {};
}

void mix(Audio& audio) {
  const int64_t channels = audio.channels;
  std::vector<float> mono(static_cast<std::size_t>(audio.frames));
  for (int64_t t = 0; t < audio.frames; ++t) {
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const auto i = static_cast<std::size_t>(t * channels + c);
      sum += audio.pcm.empty() ? audio.samples[i] : audio.pcm[i] * double{kPcmScale};
    }
    mono[static_cast<std::size_t>(t)] = static_cast<float>(sum / static_cast<double>(channels));
  }
  audio.pcm.clear();
  audio.samples = std::move(mono);
  audio.channels = 1;
}

}  // namespace

Audio parse_audio(std::string_view bytes, const std::string& name, AudioChannels channels) {
  if (bytes.empty()) fail(name, "the file is empty; expected a sound file");
  check_wav_length(bytes, name);
  SF_VIRTUAL_IO io{Memory::length, Memory::seek, Memory::read, Memory::write, Memory::tell};
  Memory memory{bytes};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(
      sf_open_virtual(&io, SFM_READ, &info, &memory), sf_close);
  if (!file) {
    std::string reason = sf_strerror(nullptr);
    while (reason.ends_with('.') || reason.ends_with('\n')) reason.pop_back();
    fail(name, fmt::format("not a sound file that can be read ({})", reason));
  }
  Audio audio;
  audio.sample_rate = info.samplerate;
  audio.channels = info.channels;
  audio.frames = is_16_bit(info.format) ? read_all(file.get(), info.channels, name, audio.pcm)
                                        : read_all(file.get(), info.channels, name, audio.samples);
  // The length of an MP3 is an estimate.
  const bool exact = (info.format & SF_FORMAT_TYPEMASK) != SF_FORMAT_MPEG;
  if (exact && info.frames != SF_COUNT_MAX && audio.frames < info.frames) {
    fail(name, fmt::format("the header promises {} frames, {} can be read; the file is cut off or "
                           "damaged",
                           info.frames, audio.frames));
  }
  if (audio.frames == 0) fail(name, "the sound has no samples; remove the file");
  check_finite(audio, name);
  if (!is_16_bit(info.format) && !is_deep(info.format)) to_16_bits(audio);
  if (channels == AudioChannels::mean && audio.channels > 1) mix(audio);
  return audio;
}

Audio read_audio(const std::filesystem::path& file, AudioChannels channels) {
  return parse_audio(read_file(file), file.string(), channels);
}

}  // namespace rotrnn
