#include "rotrnn/io/formats/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "rotrnn/io/crc32c.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

// Fields of the messages Event, Summary, Summary.Value and SessionLog.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr uint64_t kStart = 1;

template <typename Number>
std::string little_endian(Number number) {
  std::string out;
  for (size_t i = 0; i < sizeof number; ++i) out += static_cast<char>(number >> (8 * i));
  return out;
}

// A message of protocol buffers, as far as events need them.
class Message {
 public:
  // What is not there is 0.
  Message& integer(int field, uint64_t value) {
    if (value == 0) return *this;
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    bytes_ += little_endian(std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    key(field, 5);
    bytes_ += little_endian(std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, uint64_t wire_type) { varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message event_at(int64_t step) {
  using namespace std::chrono;
  Message event;
  event.real(kWallTime, duration<double>(system_clock::now().time_since_epoch()).count());
  event.integer(kStep, static_cast<uint64_t>(step));
  return event;
}

// Rotated and shifted, since a checksum of data that hold checksums is weak.
uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string record(const std::string& data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return length + little_endian(masked_crc(length)) + data + little_endian(masked_crc(data));
}

// The time in the name of an event file; 0: there is none.
int64_t time_of(const std::string& name) {
  int64_t time = 0;
  if (is_event_file(name)) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), time);
  }
  return time;
}

// TensorBoard reads the files of a folder in the order of their names, which the time decides: a
// later start has a later time, even in the same second or after a clock was set back.
int64_t free_time(const fs::path& folder) {
  constexpr int64_t kLast = 9'999'999'998;  // with more digits the order would be another
  int64_t time = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const int64_t other = time_of(entry.path().filename().string());
    if (other <= kLast) time = std::max(time, other + 1);
  }
  return time;
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || !*name) return "host";
  std::string out = name;
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

}  // namespace

bool is_event_file(const std::string& name) {
  return name.starts_with(kPrefix);
}

EventFile::EventFile(const fs::path& folder, int64_t first_step)
    : path_(folder /
            fmt::format("{}{:010}.{}.{}", kPrefix, free_time(folder), host_name(), getpid())) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw std::runtime_error(
        fmt::format("{}: cannot be opened for writing: {}", path_.string(), std::strerror(errno)));
  }
  append(event_at(0).text(kFileVersion, "brain.Event:2").bytes());
  append(
      event_at(first_step).text(kSessionLog, Message().integer(kStatus, kStart).bytes()).bytes());
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::write(int64_t step, const std::vector<Scalar>& scalars) {
  Message summary;
  for (const auto& [tag, value] : scalars) {
    Message point;
    point.text(kTag, tag).real(kSimpleValue, static_cast<float>(value));
    summary.text(kValue, point.bytes());
  }
  append(event_at(step).text(kSummary, summary.bytes()).bytes());
}

void EventFile::append(const std::string& event) {
  const std::string bytes = record(event);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw std::runtime_error(fmt::format("{}: cannot be written: {}; is the disk full?",
                                           path_.string(), std::strerror(errno)));
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void EventFile::sync() {
  if (::fsync(descriptor_) != 0) {
    throw std::runtime_error(fmt::format("{}: cannot be flushed to the disk: {}; is it full?",
                                         path_.string(), std::strerror(errno)));
  }
}

}  // namespace rotrnn
