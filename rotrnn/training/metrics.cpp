#include "rotrnn/training/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

std::string lines_up_to(const std::string& text, int64_t step) {
  std::istringstream in(text);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const bool torn = in.eof();
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (torn || !json.is_object() || json.value("step", step + 1) > step) continue;
    if (json.value("split", "") != "test") kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t step) : file_(file) {
  if (std::filesystem::exists(file)) {
    const std::string text = read_file(file), kept = lines_up_to(text, step);
    if (kept != text) write_file_atomically(file, kept);
  }
  out_.open(file, std::ios::app | std::ios::binary);
  if (!out_) {
    throw std::runtime_error(
        fmt::format("{}: cannot be opened for writing: {}", file.string(), std::strerror(errno)));
  }
}

void MetricsLog::write(const nlohmann::ordered_json& line) {
  out_ << line.dump() << '\n' << std::flush;
  if (!out_) {
    throw std::runtime_error(fmt::format("{}: cannot be written: {}; is the disk full?",
                                         file_.string(), std::strerror(errno)));
  }
}

void MetricsLog::sync() {
  const int descriptor = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // removed under our feet: the next write of the run folder tells
  const bool done = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  if (!done) {
    throw std::runtime_error(fmt::format("{}: cannot be flushed to the disk: {}; is it full?",
                                         file_.string(), std::strerror(error)));
  }
}

}  // namespace rotrnn
