#include "rotrnn/cli/info_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/runtime/stream.h"

namespace rotrnn::cli {
namespace {

// Why a model cannot stream; empty when it can.
std::string obstacle(const std::shared_ptr<const runtime::Model>& model, size_t& memory) {
  try {
    memory = runtime::Stream(model).memory();
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

std::string input_text(const runtime::ModelInfo& info) {
  if (info.text) return fmt::format("text, a vocabulary of {} tokens", info.inputs);
  if (info.tokens) return fmt::format("token numbers 0 to {}", info.inputs - 1);
  std::string text = fmt::format("{} channel{}", info.inputs, info.inputs == 1 ? "" : "s");
  if (!info.channels.empty()) text += fmt::format(" ({})", fmt::join(info.channels, ", "));
  if (info.rate > 0) text += fmt::format(", {} samples per second", grouped(info.rate));
  return text;
}

std::string output_text(const runtime::ModelInfo& info) {
  constexpr size_t kShown = 12;
  std::string text;
  if (info.classifies) {
    const auto shown = std::span(info.classes).first(std::min(kShown, info.classes.size()));
    text = fmt::format("{} classes: {}{}", info.outputs, fmt::join(shown, ", "),
                       info.classes.size() > kShown ? ", …" : "");
  } else if (info.horizon > 0) {
    text = fmt::format("the next {} steps", info.horizon);
  } else {
    text = fmt::format("{} value{}", info.outputs, info.outputs == 1 ? "" : "s");
    if (!info.values.empty()) text += fmt::format(" ({})", fmt::join(info.values, ", "));
  }
  return info.per_step ? text + ", at every step" : text;
}

}  // namespace

bool is_model_file(const std::string& path) {
  return path.ends_with(".safetensors") && !std::filesystem::is_directory(path);
}

int print_model(const std::string& path, bool json) {
  const auto model = runtime::Model::load(path);
  const runtime::ModelInfo& info = model->info();
  size_t memory = 0;
  const std::string why = obstacle(model, memory);
  if (json) {
    nlohmann::ordered_json out{{"task", info.task},
                               {"layer", info.layer},
                               {"version", info.version},
                               {"width", info.width},
                               {"system", info.system},
                               {"states", info.states},
                               {"degree", info.degree},
                               {"depth", info.depth},
                               {"activation", info.activation},
                               {"bidirectional", info.bidirectional},
                               {"pooling", name_of(info.pooling)},
                               {"frontend", info.frontend.empty() ? "none" : info.frontend},
                               {"parameters", info.parameters},
                               {"input", info.tokens ? "tokens" : "values"},
                               {"inputs", info.inputs},
                               {"text", info.text},
                               {"rate", info.rate},
                               {"channels", info.channels},
                               {"outputs", info.outputs},
                               {"classes", info.classes},
                               {"per_step", info.per_step},
                               {"horizon", info.horizon},
                               {"pairs", info.towers == 2},
                               {"streams", why.empty()}};
    if (why.empty()) out["stream_bytes"] = memory;
    print_json_line(out);
    return 0;
  }
  if (info.system == "features") {
    fmt::print("fitted to {}: {} rotations, 6 features of each\n", info.task, info.states);
  } else {
    fmt::print("{} trained on {}: {} blocks, width {}, {} complex states{}{}, {}{}, pooling {}\n",
               info.layer, info.task, info.depth, info.width, info.states,
               info.system == "channel" ? " per channel" : "",
               info.degree > 1 ? fmt::format(", products of {} inputs", info.degree) : "",
               info.activation, info.bidirectional ? ", bidirectional" : "", name_of(info.pooling));
  }
  fmt::print("{} numbers, written by rotrnn {}\n", grouped(info.parameters), info.version);
  fmt::print("takes {}{}\n", input_text(info), info.towers == 2 ? ", two sequences" : "");
  if (!info.frontend.empty()) fmt::print("front end: {}\n", info.frontend);
  fmt::print("predicts {}\n", output_text(info));
  if (why.empty()) {
    fmt::print("a stream holds {}\n", bytes(static_cast<double>(memory)));
  } else {
    fmt::print("does not stream: {}\n", why);
  }
  return 0;
}

}  // namespace rotrnn::cli
