#include "rotrnn/onnx/facts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rotrnn {
namespace {

using nlohmann::json;

constexpr const char* kTexts[] = {"no", "bytes", "characters", "no"};

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string input_usage(const OnnxSource& source) {
  const runtime::ModelInfo& info = source.info();
  const Preprocessing& p = source.preprocessing();
  if (info.tokens) {
    std::string out = "tokens are numbers of the vocabulary";
    if (p.kind == Preprocessing::Kind::bytes) out += ", a byte b being 3 + b";
    if (p.kind == Preprocessing::Kind::characters) {
      out += ", a token for every character, 1 for one that is not in it";
    }
    if (p.end_mark) out += fmt::format("; a complete sequence ends with {}", kTokenEnd);
    return out + ".";
  }
  std::string out = "x holds values in natural units (audio from -1 to 1); the graph scales them.";
  if (p.keep_every > 1) {
    out += fmt::format(" Give every {}th step only, beginning with the first.", p.keep_every);
  }
  const FrontendOptions& f = source.file().frontend;
  if (f.used()) {
    out += fmt::format(
        " Its steps are samples, of which a front end makes tokens: the step graph takes the {} "
        "samples of one token, the chunk graph whole tokens, and lengths count samples.",
        frontend_samples(f, 0));
  }
  if (!p.order.empty()) {
    out += fmt::format(" A sequence has {} steps; the graph puts them in order.", p.order.size());
  }
  return out;
}

}  // namespace

std::string onnx_usage(const OnnxSource& source, OnnxKind kind) {
  std::string out = input_usage(source);
  if (source.preprocessing().max_length > 0) {
    out +=
        fmt::format(" Training cut sequences after {} steps.", source.preprocessing().max_length);
  }
  out += source.info().classifies ? " y are logits, answer their softmax: a probability per class."
                                  : " answer are values in the units of the data.";
  if (kind == OnnxKind::sequence) {
    out += " Sequences are padded at their ends to a common number of steps; lengths are theirs.";
    if (source.info().towers == 2) out += " Sequences 2i and 2i + 1 are pair i.";
  } else {
    out += " State inputs are 0 for a new stream; give each output *_next to the next call.";
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> onnx_facts(const OnnxSource& source,
                                                            OnnxKind kind) {
  const runtime::ModelInfo& info = source.info();
  const Preprocessing& p = source.preprocessing();
  std::vector<std::pair<std::string, std::string>> out{{"format", "rotrnn-onnx"},
                                                       {"format_version", "1"},
                                                       {"graph", name_of(kind)},
                                                       {"usage", onnx_usage(source, kind)}};
  const auto put = [&out](const std::string& key, const json& value) {
    out.emplace_back(key, text_of(value));
  };
  const nlohmann::ordered_json facts = model_facts(source.file());
  for (const char* key :
       {"layer", "task", "version", "width", "states", "depth", "activation", "bidirectional",
        "pooling", "input", "inputs", "target", "outputs", "classes"}) {
    put(key, facts.at(key));
  }
  put("pairs", info.towers == 2);
  put("frontend", facts.contains("frontend") ? json(facts.at("frontend")) : json("none"));
  put("max_length", p.max_length);
  if (info.tokens) {
    put("text", kTexts[static_cast<size_t>(p.kind)]);
    put("vocabulary", p.vocabulary);
    put("end_mark", p.end_mark);
  } else {
    put("sample_rate", p.form.rate);
    put("channels", p.form.names);
    put("keep_every", p.keep_every);
    put("scaling", "inside the graph");
    put("mean", p.mean);
    put("deviation", p.deviation);
    put("mean_of_every_step", p.per_step);
  }
  if (!info.classifies) {
    put("target_names", p.target_names);
    put("target_mean", p.target_mean);
    put("target_deviation", p.target_deviation);
    put("horizon", p.horizon);
    put("target_channels", p.target_channels);
  }
  return out;
}

}  // namespace rotrnn
