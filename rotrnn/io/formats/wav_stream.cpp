#include "rotrnn/io/formats/wav_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "rotrnn/base/text/text_place.h"

namespace rotrnn {
namespace {

constexpr size_t kRiffBytes = 12, kChunkBytes = 8;
constexpr uint64_t kMostFormat = 1024;
constexpr int64_t kMostChannels = 256;
// Programs that write to a pipe put 0, 2 GB less a page, 2 GB or 4 GB here.
constexpr uint64_t kEndless = 0x7f000000;
constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

uint32_t little(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

// A sample of `size` bytes; integers count from the top of 32 bits, so that one scale serves all.
float sample(const char* at, int size, bool floats) {
  if (size == 1) return static_cast<float>(static_cast<uint8_t>(*at) - 128) / 128;
  uint32_t word = 0;
  for (int i = 0; i < size; ++i) {
    word |= static_cast<uint32_t>(static_cast<uint8_t>(at[i])) << (8 * (4 - size + i));
  }
  if (!floats) return static_cast<float>(static_cast<int32_t>(word) / 2147483648.0);
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

bool is_wav(std::string_view bytes) {
  return bytes.size() >= kRiffBytes && (bytes.starts_with("RIFF") || bytes.starts_with("RF64")) &&
         bytes.substr(8, 4) == "WAVE";
}

void WavStream::fail(const std::string& what) const {
  throw std::runtime_error(
      fmt::format("{}: offset {}: {}", name_, held_.empty() ? offset_ : begin_, what));
}

// Moves bytes to held_ until it has `size`; whether it has.
bool WavStream::collect(std::string_view& bytes, uint64_t size) {
  if (held_.empty()) begin_ = offset_;
  const size_t count = std::min<size_t>(static_cast<size_t>(size) - held_.size(), bytes.size());
  held_.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  return held_.size() == size;
}

void WavStream::read_riff() {
  if (!is_wav(held_)) {
    fail(fmt::format("{} is not the beginning of a WAV file; say what it is by --format",
                     excerpt(held_)));
  }
  state_ = State::chunk;
}

void WavStream::read_chunk() {
  const uint64_t size = little(held_, 4, 4);
  if (held_.starts_with("fmt ")) {
    if (size < 16 || size > kMostFormat) {
      fail(fmt::format("a format chunk of {} bytes, expected 16 to {}", size, kMostFormat));
    }
    state_ = State::format;
    left_ = size + size % 2;
  } else if (held_.starts_with("data")) {
    if (channels_ == 0) fail("samples before the format chunk; the file is damaged");
    state_ = State::samples;
    endless_ = size == 0 || size >= kEndless;
    left_ = endless_ ? std::numeric_limits<uint64_t>::max() : size;
  } else {
    state_ = size == 0 ? State::chunk : State::skip;
    left_ = size + size % 2;
  }
}

void WavStream::read_format() {
  uint32_t tag = little(held_, 0, 2);
  const uint32_t channels = little(held_, 2, 2), rate = little(held_, 4, 4);
  const uint32_t frame = little(held_, 12, 2), bits = little(held_, 14, 2);
  if (tag == kExtensible && held_.size() >= 26) tag = little(held_, 24, 2);
  const bool integers = tag == kPcm && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
  const bool floats = tag == kFloat && bits == 32;
  if (!integers && !floats) {
    fail(
        fmt::format("format {} of {} bits is not read; convert it: ffmpeg -i FILE -c:a pcm_s16le "
                    "-f wav -",
                    tag, bits));
  }
  if (channels < 1 || channels > kMostChannels || rate < 1 ||
      rate > static_cast<uint32_t>(std::numeric_limits<int32_t>::max()) ||
      frame != channels * bits / 8) {
    fail(fmt::format("{} channels, {} samples per second, {} bytes per frame do not fit together",
                     channels, rate, frame));
  }
  channels_ = channels;
  rate_ = rate;
  bytes_ = static_cast<int>(bits / 8);
  floats_ = floats;
  state_ = State::chunk;
}

void WavStream::decode(std::string_view bytes, std::vector<float>& samples) {
  const auto frame = static_cast<size_t>(bytes_) * static_cast<size_t>(channels_);
  const auto take = [&](std::string_view frames) {
    for (size_t at = 0; at < frames.size(); at += static_cast<size_t>(bytes_)) {
      samples.push_back(sample(frames.data() + at, bytes_, floats_));
    }
  };
  if (!held_.empty()) {
    if (!collect(bytes, frame)) return;
    take(held_);
    held_.clear();
  }
  const size_t whole = bytes.size() / frame * frame;
  take(bytes.substr(0, whole));
  held_ = bytes.substr(whole);
}

void WavStream::feed(std::string_view bytes, std::vector<float>& samples) {
  while (!bytes.empty()) {
    const size_t before = bytes.size();
    switch (state_) {
      case State::riff:
        if (collect(bytes, kRiffBytes)) {
          read_riff();
          held_.clear();
        }
        break;
      case State::chunk:
        if (collect(bytes, kChunkBytes)) {
          read_chunk();
          held_.clear();
        }
        break;
      case State::format:
        if (collect(bytes, left_)) {
          read_format();
          held_.clear();
        }
        break;
      case State::skip: {
        const auto count = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
        bytes.remove_prefix(count);
        left_ -= count;
        if (left_ == 0) state_ = State::chunk;
        break;
      }
      case State::samples: {
        const auto count = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
        decode(bytes.substr(0, count), samples);
        bytes.remove_prefix(count);
        if (!endless_) left_ -= count;
        if (left_ == 0) state_ = State::behind;
        break;
      }
      case State::behind:  // what follows the samples is of no use here
        bytes = {};
        break;
    }
    offset_ += before - bytes.size();
  }
}

void WavStream::end() const {
  if (!ready()) fail("the file ends inside its header");
  if (state_ == State::samples && !endless_) {
    fail(fmt::format("the file ends {} bytes before its samples do", left_));
  }
}

}  // namespace rotrnn
