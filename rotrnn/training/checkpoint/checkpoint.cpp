#include "rotrnn/training/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/checksums.h"
#include "rotrnn/io/sha.h"
#include "rotrnn/version.h"

namespace rotrnn {
namespace {

using UnorderedJson = nlohmann::json;

// Format 2 has neither checksums nor skipped steps.
constexpr int kFormat = 3, kFormatWithoutSums = 2;

// JSON has no NaN; a loss may be one.
UnorderedJson number(double value) {
  return std::isfinite(value) ? UnorderedJson(value) : UnorderedJson(nullptr);
}
double number(const UnorderedJson& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

UnorderedJson facts_json(const TaskFacts& facts) {
  const DataShape& s = facts.shape;
  return {{"input", s.input == InputKind::tokens ? "tokens" : "channels"},
          {"inputs", s.inputs},
          {"target", s.target == TargetKind::classes ? "classes" : "values"},
          {"outputs", s.outputs},
          {"towers", s.towers},
          {"per_token", s.per_token},
          {"typical_length", facts.typical_length},
          {"classes", facts.classes},
          {"preprocessing", to_json(facts.preprocessing)}};
}

TaskFacts parse_facts(const UnorderedJson& json) {
  TaskFacts facts;
  DataShape& s = facts.shape;
  s.input = json.at("input") == "tokens" ? InputKind::tokens : InputKind::channels;
  s.inputs = json.at("inputs").get<int64_t>();
  s.target = json.at("target") == "classes" ? TargetKind::classes : TargetKind::values;
  s.outputs = json.at("outputs").get<int64_t>();
  s.towers = json.at("towers").get<int64_t>();
  s.per_token = json.at("per_token").get<bool>();
  facts.typical_length = json.at("typical_length").get<int64_t>();
  facts.classes = json.at("classes").get<std::vector<std::string>>();
  facts.preprocessing = preprocessing_from_json(json.at("preprocessing"));
  const Preprocessing& p = facts.preprocessing;
  s.rate = p.rate();
  const int64_t inputs = p.tokens() ? std::ssize(p.vocabulary) : p.form.channels;
  const int64_t outputs = s.target == TargetKind::classes ? std::ssize(facts.classes)
                          : s.per_token ? std::ssize(p.target_channels) * p.horizon
                                        : std::ssize(p.target_mean);
  if (s.inputs < 1 || s.outputs < 1 || s.inputs != inputs || s.outputs != outputs ||
      s.towers != p.form.towers || p.tokens() != (s.input == InputKind::tokens)) {
    throw std::runtime_error("its task is inconsistent");
  }
  return facts;
}

struct Parsed {
  CheckpointHeader header;
  int format = 0;
};

CheckpointHeader header_from(const UnorderedJson& json, int format, const std::string& where) {
  if (format != kFormat && format != kFormatWithoutSums) {
    throw std::runtime_error(
        fmt::format("{}: format {} is not known to this version, which reads formats {} and {}",
                    where, format, kFormatWithoutSums, kFormat));
  }
  CheckpointHeader header;
  header.version = json.at("version").get<std::string>();
  header.config = parse_config(json.at("config").get<std::string>(), where + " (config)");
  check(header.config);
  try {
    header.facts = parse_facts(json.at("task"));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", where, error.what()));
  }
  const UnorderedJson& state = json.at("state");
  TrainState& s = header.state;
  s.step = state.at("step").get<int64_t>();
  s.tokens = state.at("tokens").get<int64_t>();
  s.best_score = number(state.at("best_score"));
  s.best_step = state.at("best_step").get<int64_t>();
  s.loss_sum = number(state.at("loss_sum"));
  s.loss_count = state.at("loss_count").get<int64_t>();
  if (format != kFormatWithoutSums) {
    s.skipped = state.at("skipped").get<int64_t>();
    s.skipped_in_a_row = state.at("skipped_in_a_row").get<int64_t>();
  }
  if (s.step < 0 || s.tokens < 0 || s.loss_count < 0 || s.skipped_in_a_row < 0 ||
      s.skipped < s.skipped_in_a_row || s.step < s.skipped) {
    throw std::runtime_error(fmt::format("{}: its counts are inconsistent", where));
  }
  return header;
}

Parsed parse(std::string_view text, const std::string& where) {
  try {
    const UnorderedJson json = UnorderedJson::parse(text);
    const int format = json.at("format").get<int>();
    return {header_from(json, format, where), format};
  } catch (const UnorderedJson::exception& error) {
    throw std::runtime_error(
        fmt::format("{}: not a checkpoint of this program: {}", where, error.what()));
  } catch (const std::logic_error& error) {
    throw std::runtime_error(error.what());
  }
}

// The name of a block's tensor without "blocks.N.", and N; -1 for tensors of no block.
std::pair<int64_t, std::string_view> block_of(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return {-1, name};
  name.remove_prefix(kBlocks.size());
  const size_t dot = std::min(name.find('.'), name.size());
  int64_t number = 0;
  for (const char c : name.substr(0, dot)) {
    if (c < '0' || c > '9' || number > 1'000'000) return {-1, name};
    number = 10 * number + (c - '0');
  }
  return {number, name.substr(dot)};
}

int64_t elements(const SafeTensor& tensor) {
  return static_cast<int64_t>(tensor.data.size() / dtype_size(tensor.dtype));
}

// Channels that the encoder reads; std::runtime_error where no network has such a front end.
int64_t encoder_inputs(const CheckpointHeader& header, const std::string& where) {
  constexpr int64_t kMost = int64_t{1} << 31;  // whose products with bands or sizes are numbers
  const DataShape& s = header.facts.shape;
  const FrontendOptions& frontend = header.config.model.frontend;
  if (!frontend.used()) return s.inputs;
  if (s.inputs > kMost) {
    throw std::runtime_error(fmt::format("{}: {} channels; the file is damaged", where, s.inputs));
  }
  try {
    return frontend_channels(resolve_frontend(frontend, s.rate), s.inputs);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", where, error.what()));
  }
}

// A few bytes of state.json can demand a network of any size: it must be the size of the weights
// beside it. Loading them checks the rest, tensor by tensor.
void check_sizes(const CheckpointHeader& header, const SafeTensorFile& weights) {
  const ModelOptions& m = header.config.model;
  const DataShape& s = header.facts.shape;
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(
        fmt::format("{}: {}; the file belongs to another model", weights.where(), what));
  };
  const auto want = [&](const char* name, const std::vector<int64_t>& shape) {
    const auto& found = weights.at(name).shape;
    if (found != shape) {
      refuse(fmt::format("tensor \"{}\" has shape [{}], expected [{}]", name,
                         fmt::join(found, ", "), fmt::join(shape, ", ")));
    }
  };
  if (m.body == Body::features) {
    const int64_t S = m.features.states, groups = S / 16;
    want("bank.theta", {S});
    want("bank.drive", {groups, m.features.taps, 2, 16});
    want("head.weight", {s.outputs, 6 * S});
    return;
  }
  const bool tokens = s.input == InputKind::tokens;
  const int64_t inputs = encoder_inputs(header, weights.where());
  want("encoder.weight", tokens ? std::vector{s.inputs, m.width} : std::vector{m.width, inputs});
  want("head.weight", {s.outputs, m.width});
  // All blocks are like the first, and the first has what every layer has at least.
  std::vector<int64_t> count(static_cast<size_t>(m.depth));
  for (const std::string& name : weights.names()) {
    const auto [block, rest] = block_of(name);
    if (block < 0) continue;
    const std::string first = fmt::format("blocks.0{}", rest);
    if (block >= m.depth || !weights.contains(first) ||
        weights.at(first).shape != weights.at(name).shape) {
      refuse(fmt::format("tensor \"{}\" is none of {} equal blocks", name, m.depth));
    }
    count[static_cast<size_t>(block)] += elements(weights.at(name));
  }
  const double D = static_cast<double>(m.width), N = static_cast<double>(m.state);
  double least = D * N;
  if (has_gate(m.activation)) least += D * D;
  if (m.layer == "rotrnn") least += N * N / static_cast<double>(m.rotrnn.heads);
  for (size_t i = 0; i < count.size(); ++i) {
    if (count[i] != count[0] || static_cast<double>(count[i]) < least) {
      refuse(
          fmt::format("block {} has {} numbers, a width of {} and a state of {} need {:.0f} at "
                      "least",
                      i, count[i], m.width, m.state, least));
    }
  }
}

Checkpoint read_once(const std::filesystem::path& folder, Parts parts) {
  Checkpoint out;
  out.folder = folder;
  const auto sums_file = folder / kChecksumFile;
  out.checked = std::filesystem::exists(sums_file);
  Checksums sums;
  if (out.checked) sums = parse_checksums(read_file(sums_file, kMaxTextBytes), sums_file.string());
  const auto read = [&](const char* name, auto... limit) {
    std::string bytes = read_file(folder / name, limit...);
    if (out.checked) check_sum(sums, folder / name, bytes);
    return bytes;
  };
  const auto read_tensors = [&](const char* name) {
    return SafeTensorFile::from_bytes(read(name), (folder / name).string());
  };
  Parsed parsed = parse(read(kStateFile, kMaxTextBytes), (folder / kStateFile).string());
  if (parsed.format != kFormatWithoutSums && !out.checked) {
    throw std::runtime_error(
        fmt::format("{}: is missing; the checkpoint is damaged or not whole", sums_file.string()));
  }
  out.header = std::move(parsed.header);
  if (parts == Parts::header) return out;
  out.weights = read_tensors(kWeightsFile);
  check_sizes(out.header, *out.weights);
  if (parts == Parts::all) out.moments = read_tensors(kOptimiserFile);
  return out;
}

// Another folder of the same name has another identity.
std::pair<dev_t, ino_t> identity(const std::filesystem::path& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 ? std::pair(status.st_dev, status.st_ino)
                                              : std::pair<dev_t, ino_t>();
}

// With the checks of every reader, from the disk: checksums, format, sizes.
void prove(const std::filesystem::path& folder, const Checksums& sums, Parts parts) {
  drop_cache(folder / kChecksumFile);
  for (const auto& [name, sum] : sums) drop_cache(folder / name);
  if (read_file(folder / kChecksumFile) != checksums_text(sums)) {
    throw std::runtime_error(
        fmt::format("{}: the file read back differs from what was written; check the disk",
                    (folder / kChecksumFile).string()));
  }
  read_once(folder, parts);
}

}  // namespace

CheckpointHeader parse_header(std::string_view text, const std::string& where) {
  return parse(text, where).header;
}

Checkpoint read_checkpoint(const std::filesystem::path& folder, Parts parts) {
  constexpr int kAttempts = 10;
  for (int attempt = 1;; ++attempt) {
    const auto before = identity(folder);
    const auto again = [&] { return attempt < kAttempts && identity(folder) != before; };
    try {
      Checkpoint out = read_once(folder, parts);
      if (out.checked || !again()) return out;
    } catch (const std::runtime_error&) {
      if (!again()) throw;
    }
  }
}

void write_checkpoint(const std::filesystem::path& folder, const CheckpointHeader& header,
                      std::span<const NamedTensor> weights, std::span<const NamedTensor> moments) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Checksums sums;
  const auto write = [&](const char* name, const std::string& bytes) {
    sums[name] = sha256_hex(bytes);
    write_new_file(folder / name, bytes);
  };
  write(kWeightsFile, safetensors_bytes(folder / kWeightsFile, weights, {{"format", "rotrnn"}}));
  if (!moments.empty()) write(kOptimiserFile, safetensors_bytes(folder / kOptimiserFile, moments));
  write(kStateFile, header_text(header));
  write_new_file(folder / kChecksumFile, checksums_text(sums));
  sync_tree(folder);
  prove(folder, sums, moments.empty() ? Parts::weights : Parts::all);
}

std::string header_text(const CheckpointHeader& header) {
  const TrainState& s = header.state;
  const UnorderedJson json{{"format", kFormat},
                           {"version", kVersion},
                           {"config", to_toml(header.config)},
                           {"task", facts_json(header.facts)},
                           {"state",
                            {{"step", s.step},
                             {"tokens", s.tokens},
                             {"best_score", number(s.best_score)},
                             {"best_step", s.best_step},
                             {"loss_sum", number(s.loss_sum)},
                             {"loss_count", s.loss_count},
                             {"skipped", s.skipped},
                             {"skipped_in_a_row", s.skipped_in_a_row}}}};
  return json.dump(2) + "\n";
}

bool is_checkpoint(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kStateFile);
}

std::filesystem::path find_checkpoint(const std::filesystem::path& run, Which which) {
  namespace fs = std::filesystem;
  if (is_checkpoint(run)) return run;
  const fs::path best = existing_folder(run / "best");
  fs::path last = existing_folder(run / "last");
  if (last.empty()) last = existing_folder(run / "previous");
  const fs::path found = which == Which::best && !best.empty() ? best : last;
  if (!found.empty()) return found;
  const bool run_folder = fs::exists(run / "config.toml");
  throw std::runtime_error(fmt::format(
      "{}: {}", run.string(),
      !fs::exists(run) ? "there is no such run folder"
      : !fs::is_directory(run)
          ? "is a file, not a run folder; exported models are for rotrnn stream "
            "and info"
      : run_folder ? "there is no checkpoint in it yet; wait for the first one or train again"
                   : "is not a run folder: there is neither a checkpoint nor a config.toml in it"));
}

}  // namespace rotrnn
