#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

// The event files of TensorBoard: TFRecords, each with an Event of
// tensorflow/core/util/event.proto.

namespace rotrnn {

/// Name and value of a point of a curve.
using Scalar = std::pair<std::string, double>;

/// A file of scalars that TensorBoard shows. Every start of a process has one of its own, whose
/// name sorts behind those of earlier starts.
class EventFile {
 public:
  /// Makes a new file in `folder` and says that a session starts at `first_step`: TensorBoard then
  /// forgets points of earlier files from that step on.
  EventFile(const std::filesystem::path& folder, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Appends points at a step and hands them to the system at once.
  void write(int64_t step, const std::vector<Scalar>& scalars);

  /// Returns when they are on the disk.
  void sync();

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(const std::string& event);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Whether a file of that name is an event file.
bool is_event_file(const std::string& name);

}  // namespace rotrnn
