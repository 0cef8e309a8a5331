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

std::vector<Scalar> scalars_of(const nlohmann::ordered_json& line) {
  const std::string split = line.value("split", "");
  std::vector<Scalar> out;
  for (const auto& [name, value] : line.items()) {
    if (name != "step" && value.is_number()) {
      out.emplace_back(fmt::format("{}/{}", split, name), value.get<double>());
    }
    if (split != "norms" || !value.is_array()) continue;
    for (size_t layer = 0; layer < value.size(); ++layer) {
      if (!value[layer].is_number()) continue;
      out.emplace_back(fmt::format("{}/{}/layer{}", split, name, layer),
                       value[layer].get<double>());
    }
  }
  return out;
}

MetricsLog::MetricsLog(const std::filesystem::path& file, int64_t step, TensorBoard tensorboard)
    : file_(file) {
  if (std::filesystem::exists(file)) {
    const std::string text = read_file(file), kept = lines_up_to(text, step);
    if (kept != text) write_file_atomically(file, kept);
  }
  out_.open(file, std::ios::app | std::ios::binary);
  if (!out_) {
    throw std::runtime_error(
        fmt::format("{}: cannot be opened for writing: {}", file.string(), std::strerror(errno)));
  }
  // Lines that an earlier process wrote up to the step stay.
  if (tensorboard == TensorBoard::yes) events_.emplace(file.parent_path(), step + 1);
}

void MetricsLog::write(const nlohmann::ordered_json& line) {
  out_ << line.dump() << '\n' << std::flush;
  if (!out_) {
    throw std::runtime_error(fmt::format("{}: cannot be written: {}; is the disk full?",
                                         file_.string(), std::strerror(errno)));
  }
  if (!events_) return;
  const std::vector<Scalar> scalars = scalars_of(line);
  if (!scalars.empty()) events_->write(line.value("step", int64_t{0}), scalars);
}

void MetricsLog::sync() {
  if (events_) events_->sync();
  const int descriptor = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // the folder was removed: the next write of the run reports it
  const bool done = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  if (!done) {
    throw std::runtime_error(fmt::format("{}: cannot be flushed to the disk: {}; is it full?",
                                         file_.string(), std::strerror(error)));
  }
}

}  // namespace rotrnn
