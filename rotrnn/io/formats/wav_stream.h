#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rotrnn {

/// Whether these first bytes (12 of them) are those of a WAV file.
bool is_wav(std::string_view bytes);

/// A WAV recording that arrives piece by piece, as from a microphone: constant memory, samples as
/// soon as their bytes are there. Integers of 8, 16, 24 and 32 bits and floats of 32. What writes
/// to a pipe cannot know the length: a data chunk of no or of nearly the largest length goes on to
/// the end of the input.
class WavStream {
 public:
  /// `name` stands for the file in messages.
  explicit WavStream(std::string name) : name_(std::move(name)) {}

  /// Takes the next bytes and appends what they hold, -1 to 1, frame by frame. What is not such a
  /// file is a std::runtime_error `name: offset N: …`.
  void feed(std::string_view bytes, std::vector<float>& samples);

  /// The input is complete: std::runtime_error when the header is not, or when samples are missing
  /// that it promised.
  void end() const;

  /// Whether the header has been read, and what is in it.
  bool ready() const { return state_ == State::samples || state_ == State::behind; }
  int64_t rate() const { return rate_; }
  int64_t channels() const { return channels_; }

 private:
  enum class State { riff, chunk, format, skip, samples, behind };

  bool collect(std::string_view& bytes, uint64_t size);
  void read_riff();
  void read_chunk();
  void read_format();
  void decode(std::string_view bytes, std::vector<float>& samples);
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  State state_ = State::riff;
  std::string held_;      // the part of a header or of a frame that has come
  uint64_t offset_ = 0;   // of what comes next
  uint64_t begin_ = 0;    // of what is held
  uint64_t left_ = 0;     // bytes of this chunk
  bool endless_ = false;  // the chunk goes on to the end of the input
  int64_t rate_ = 0, channels_ = 0;
  int bytes_ = 0;  // of a sample
  bool floats_ = false;
};

}  // namespace rotrnn
