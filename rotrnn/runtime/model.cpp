#include "rotrnn/runtime/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/runtime/network.h"

// Reads what docs/deploy.md describes.

namespace rotrnn::runtime {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "rotrnn-model", kVersion[] = "1";
constexpr int64_t kMostWidth = 1 << 16, kMostBlocks = 1 << 12, kMostDegree = 64;

class Loader {
 public:
  Loader(const SafeTensorFile& file, std::string where, Network& network)
      : file_(file), where_(std::move(where)), network_(network) {}

  void run() {
    const json model = parse_metadata();
    read_info(model);
    read_preprocessing(model);
    network_.simd = &kernels::table();
    read_encoder();
    for (int64_t i = 0; i < network_.info.depth; ++i) read_block(i);
    if (network_.info.towers == 2) network_.hidden = read_linear("hidden", 4 * D_, D_);
    network_.head = read_linear("head", D_, network_.info.outputs);
    check_all_known();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(where_ + ": " + what);
  }

  [[noreturn]] void damaged(const std::string& what) const {
    refuse(what + "; export the model again");
  }

  const std::string& metadata(const char* key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end() ||
        (std::strcmp(key, "format") == 0 && found->second != kFormat)) {
      refuse("is a safetensors file but not a model that was exported; make one by rotrnn export");
    }
    return found->second;
  }

  json parse_metadata() const {
    metadata("format");
    const std::string& version = metadata("format_version");
    if (version != kVersion) {
      refuse(fmt::format("is of format {}, this version reads {}; use a newer rotrnn",
                         version.substr(0, 20), kVersion));
    }
    json model = json::parse(metadata("model"), nullptr, false);
    if (!model.is_object()) damaged("\"model\" of its metadata is not a JSON object");
    return model;
  }

  template <typename T>
  T get(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) damaged(fmt::format("\"{}\" is missing in its metadata", key));
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>) {
      fits = found->is_boolean();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      fits = found->is_number_integer() &&
             !(found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{1} << 62);
    } else if constexpr (std::is_same_v<T, std::string>) {
      fits = found->is_string();
    } else {
      fits = found->is_array() && std::all_of(found->begin(), found->end(),
                                              [](const json& item) { return item.is_string(); });
    }
    if (!fits) damaged(fmt::format("\"{}\" of its metadata is of a wrong kind", key));
    return found->get<T>();
  }

  int64_t get_size(const json& object, const char* key, int64_t most) const {
    const auto value = get<int64_t>(object, key);
    if (value < 1 || value > most) {
      damaged(fmt::format("\"{}\" of its metadata is {}, expected 1 to {}", key, value, most));
    }
    return value;
  }

  // The number of the string in a list of choices.
  size_t get_choice(const json& object, const char* key,
                    std::initializer_list<const char*> choices) const {
    const auto value = get<std::string>(object, key);
    size_t i = 0;
    for (const char* choice : choices) {
      if (value == choice) return i;
      ++i;
    }
    refuse(
        fmt::format("\"{}\" of its metadata is \"{}\", which this version does not know; use a "
                    "newer rotrnn or export the model again",
                    key, value.substr(0, 40)));
  }

  void read_info(const json& model) {
    ModelInfo& info = network_.info;
    channels_ = get_choice(model, "system", {"diagonal", "channel"}) == 1;
    info.system = channels_ ? "channel" : "diagonal";
    info.layer = get<std::string>(model, "layer");
    info.task = get<std::string>(model, "task");
    info.version = get<std::string>(model, "version");
    info.width = get_size(model, "width", kMostWidth);
    info.states = get_size(model, "states", kMostWidth);
    info.depth = get_size(model, "depth", kMostBlocks);
    info.bidirectional = get<bool>(model, "bidirectional");
    info.pooling = static_cast<Pooling>(get_choice(model, "pooling", {"mean", "last", "none"}));
    info.tokens = get_choice(model, "input", {"tokens", "values"}) == 0;
    info.inputs = get_size(model, "inputs", int64_t{1} << 31);
    info.classifies = get_choice(model, "target", {"classes", "values"}) == 0;
    info.outputs = get_size(model, "outputs", int64_t{1} << 31);
    info.towers = get_size(model, "towers", 2);
    info.per_step = get<bool>(model, "per_token");
    info.classes = get<std::vector<std::string>>(model, "classes");
    if (std::ssize(info.classes) != (info.classifies ? info.outputs : 0)) {
      damaged(fmt::format("it has {} outputs and names of {} classes", info.outputs,
                          info.classes.size()));
    }
    if (info.towers == 2 && (info.pooling == Pooling::none || info.per_step)) {
      damaged("a model of pairs cannot tell something at every step");
    }
    if (info.per_step && info.pooling != Pooling::none) {
      damaged("it tells something at every step but has a pooling");
    }
    kernels::BlockConfig& c = network_.config;
    D_ = info.width;
    S_ = info.states;
    c.D = static_cast<size_t>(D_);
    c.S = static_cast<size_t>(S_);
    constexpr kernels::Activation kActivations[] = {
        kernels::Activation::half_glu1, kernels::Activation::full_glu,
        kernels::Activation::half_glu2, kernels::Activation::gelu, kernels::Activation::exact_glu};
    c.activation = kActivations[get_choice(
        model, "activation", {"half_glu1", "full_glu", "half_glu2", "gelu", "exact_glu"})];
    info.activation = get<std::string>(model, "activation");
    constexpr kernels::Norm kNorms[] = {kernels::Norm::none, kernels::Norm::batch,
                                        kernels::Norm::layer};
    c.norm = kNorms[get_choice(model, "norm", {"none", "affine", "layer"})];
    c.prenorm = get<bool>(model, "prenorm");
    c.bidirectional = info.bidirectional;
    c.batch_statistics = false;
    c.keep = kernels::Keep::nothing;
    if (!channels_) return;
    info.degree = get_size(model, "degree", kMostDegree);
    const size_t products = get_choice(model, "liquid", {"none", "kb", "pb"});
    liquid_inside_ = products == 1;
    if ((products == 0) != (info.degree == 1)) {
      damaged(fmt::format("it has products of {} inputs and says of them \"{}\"", info.degree,
                          get<std::string>(model, "liquid")));
    }
  }

  void read_preprocessing(const json& model) {
    ModelInfo& info = network_.info;
    try {
      network_.preprocessing = preprocessing_from_json(model.at("preprocessing"));
    } catch (const json::exception&) {
      damaged("its preprocessing is not complete");
    } catch (const std::runtime_error& error) {
      damaged(error.what());
    }
    Preprocessing& p = network_.preprocessing;
    const bool text =
        p.kind == Preprocessing::Kind::bytes || p.kind == Preprocessing::Kind::characters;
    const auto finite = [](const std::vector<double>& numbers) {
      return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
    };
    const auto told = static_cast<int64_t>(p.target_channels.size());
    const bool inputs_fit =
        p.tokens() == info.tokens && p.form.towers == info.towers &&
        (p.tokens() ? p.form.channels == 1 && (!text || std::ssize(p.vocabulary) == info.inputs)
                    : p.form.channels == info.inputs);
    const bool outputs_fit =
        info.classifies ||
        (p.horizon > 0 ? info.per_step && told > 0 && told * p.horizon == info.outputs
                       : std::ssize(p.target_mean) == info.outputs);
    // Zero deviations and permutations that are none would be caught nowhere else.
    const bool numbers_fit =
        finite(p.mean) && finite(p.deviation) && finite(p.target_mean) &&
        finite(p.target_deviation) && std::isfinite(p.form.scale) &&
        std::all_of(p.deviation.begin(), p.deviation.end(), [](double x) { return x != 0; });
    if (!inputs_fit || !outputs_fit || !numbers_fit) {
      damaged("its preprocessing does not fit the network");
    }
    // Callers give natural units, and steps one after the other.
    if (!p.tokens()) {
      p.form.element = Element::f32;
      p.form.scale = 1;
    }
    info.text = text;
    info.rate = p.form.rate;
    info.channels = p.form.names;
    info.keep_every = p.keep_every;
    info.max_length = p.max_length;
    info.horizon = p.horizon;
    info.values = p.target_names;
  }

  // A tensor of this very shape, copied to aligned memory.
  const float* take(const std::string& name, const std::vector<int64_t>& shape) {
    known_.insert(name);
    const SafeTensor& tensor = file_.at(name);
    if (tensor.dtype != Dtype::f32 || tensor.shape != shape) {
      damaged(
          fmt::format("tensor \"{}\" is {} with {} dimensions or another shape than [{}] of F32",
                      name, dtype_name(tensor.dtype), tensor.shape.size(), fmt::join(shape, ", ")));
    }
    const size_t count = tensor.data.size() / sizeof(float);
    auto* numbers = network_.memory.take<float>(count);
    std::memcpy(numbers, tensor.data.data(), tensor.data.size());
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(numbers[i])) {
        damaged(fmt::format("number {} of tensor \"{}\" is {}", i, name, numbers[i]));
      }
    }
    network_.info.parameters += static_cast<int64_t>(count);
    return numbers;
  }

  const float* take_optional(const std::string& name, const std::vector<int64_t>& shape) {
    return file_.contains(name) ? take(name, shape) : nullptr;
  }

  Linear read_linear(const std::string& name, int64_t inputs, int64_t outputs) {
    const float* weight = take(name + ".weight", {outputs, inputs});
    Linear linear;
    linear.inputs = static_cast<size_t>(inputs);
    linear.outputs = static_cast<size_t>(outputs);
    linear.bias = take(name + ".bias", {outputs});
    linear.packed = kernels::pack_weight(weight, linear.inputs, linear.outputs, network_.memory);
    return linear;
  }

  void read_encoder() {
    const int64_t C = network_.info.inputs;
    if (network_.info.tokens) {
      network_.encoder = take("encoder.weight", {C, D_});
      return;
    }
    const float* weight = take("encoder.weight", {D_, C});
    network_.encoder_bias = take("encoder.bias", {D_});
    auto* rows = network_.memory.take<float>(static_cast<size_t>(C * D_));
    for (int64_t c = 0; c < C; ++c) {
      for (int64_t d = 0; d < D_; ++d) rows[c * D_ + d] = weight[d * C + c];
    }
    network_.encoder = rows;
  }

  void read_block(int64_t i) {
    const std::string at = fmt::format("blocks.{}.", i);
    const kernels::BlockConfig& c = network_.config;
    if (channels_) return read_channel_block(at);
    kernels::BlockParameters p;
    p.layer.width = D_, p.layer.states = S_;
    p.layer.each(
        [&](const std::string& name, const float*& field, std::initializer_list<int64_t> shape) {
          const bool optional = name == "b" || name == "e" || name.starts_with("start_");
          if (name == "V_reverse" && !c.bidirectional) return;
          field = optional ? take_optional(at + name, shape) : take(at + name, shape);
        });
    if ((p.layer.start_re == nullptr) != (p.layer.start_im == nullptr)) {
      damaged(fmt::format("block {} has one of start_re and start_im", i));
    }
    read_branch(at, p);
    network_.blocks.push_back(p);
    if (!c.bidirectional) network_.steps.emplace_back(c, p, network_.memory);
  }

  // A complex tensor [D, N], as two.
  bool take_pair(const std::string& name, bool optional, const float*& re, const float*& im) {
    if (optional && !file_.contains(name + "_re") && !file_.contains(name + "_im")) return false;
    re = take(name + "_re", {D_, S_});
    im = take(name + "_im", {D_, S_});
    return true;
  }

  void read_channel_block(const std::string& at) {
    const kernels::BlockConfig& c = network_.config;
    kernels::ChannelStepLayer s;
    s.width = D_;
    s.states = S_;
    take_pair(at + "lambda", false, s.lambda_re, s.lambda_im);
    take_pair(at + "c", false, s.c_re, s.c_im);
    if (c.bidirectional) take_pair(at + "c_reverse", false, s.c_reverse_re, s.c_reverse_im);
    if (take_pair(at + "p", true, s.p_re, s.p_im)) take_pair(at + "q", false, s.q_re, s.q_im);
    take_pair(at + "b", true, s.b_re, s.b_im);
    s.orders = network_.info.degree - 1;
    s.liquid_inside = liquid_inside_;
    if (s.orders > 0) s.liquid = take(at + "liquid", {s.orders, D_});
    kernels::BlockParameters p;
    p.layer.D = take(at + "D", {D_});
    read_branch(at, p);
    network_.blocks.push_back(p);
    network_.steps.emplace_back(c, p, s, network_.memory);
  }

  // What a block has besides its system.
  void read_branch(const std::string& at, kernels::BlockParameters& p) {
    const kernels::BlockConfig& c = network_.config;
    if (c.norm != kernels::Norm::none) {
      p.norm_weight = take(at + "norm.scale", {D_});
      p.norm_bias = take(at + "norm.shift", {D_});
    }
    if (c.activation != kernels::Activation::gelu) {
      p.gate_weight = take(at + "gate.weight", {D_, D_});
      p.gate_bias = take(at + "gate.bias", {D_});
    }
    if (kernels::has_value(c.activation)) {
      p.value_weight = take(at + "value.weight", {D_, D_});
      p.value_bias = take(at + "value.bias", {D_});
    }
  }

  void check_all_known() const {
    for (const std::string& name : file_.names()) {
      if (!known_.contains(name)) {
        damaged(fmt::format("tensor \"{}\" does not belong to such a model", name.substr(0, 80)));
      }
    }
  }

  const SafeTensorFile& file_;
  std::string where_;
  Network& network_;
  int64_t D_ = 0, S_ = 0;
  bool channels_ = false, liquid_inside_ = false;
  std::set<std::string> known_;
};

// Told apart are models, not attackers: eight bytes at a time are enough.
uint64_t fingerprint_of(const SafeTensorFile& file) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](const void* data, size_t size) {
    const auto* at = static_cast<const char*>(data);
    for (size_t i = 0; i < size; i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, at + i, std::min<size_t>(8, size - i));
      hash = (hash ^ word) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29;
    }
  };
  for (const auto& [key, value] : file.metadata()) mix(value.data(), value.size());
  for (const std::string& name : file.names()) {
    mix(file.at(name).data.data(), file.at(name).data.size());
  }
  return hash;
}

}  // namespace

Model::Model() : network_(std::make_unique<Network>()) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::make(const SafeTensorFile& file, const std::string& where) {
  std::shared_ptr<Model> model(new Model);
  Loader(file, where, *model->network_).run();
  model->network_->fingerprint = fingerprint_of(file);
  return model;
}

std::shared_ptr<const Model> Model::load(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) {
    throw std::runtime_error(
        fmt::format("{}: is a folder; if it is a run, make a model of it: rotrnn export {} --out "
                    "model.safetensors",
                    file.string(), file.string()));
  }
  return make(SafeTensorFile::map(file), file.string());
}

std::shared_ptr<const Model> Model::from_bytes(std::string bytes, const std::string& where) {
  return make(SafeTensorFile::from_bytes(std::move(bytes), where), where);
}

const ModelInfo& Model::info() const {
  return network_->info;
}

void Model::answer(std::span<float> logits) const {
  const ModelInfo& info = network_->info;
  if (static_cast<int64_t>(logits.size()) != info.outputs) {
    throw std::invalid_argument(
        fmt::format("{} logits for a model of {} outputs", logits.size(), info.outputs));
  }
  if (info.classifies) {
    const float top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x - top));
    for (float& x : logits) {
      x = static_cast<float>(std::exp(static_cast<double>(x - top)) / sum);
    }
    return;
  }
  const Preprocessing& p = network_->preprocessing;
  for (size_t k = 0; k < logits.size(); ++k) {
    const bool forecast = p.horizon > 0;
    const size_t at =
        forecast ? static_cast<size_t>(p.target_channels[k % p.target_channels.size()]) : k;
    const double scale = forecast ? p.deviation[at] : p.target_deviation[at];
    const double shift = forecast ? p.mean[at] : p.target_mean[at];
    logits[k] = static_cast<float>(logits[k] * scale + shift);
  }
}

std::vector<int32_t> Model::tokens(std::string_view text) const {
  const Preprocessing& p = network_->preprocessing;
  if (!network_->info.text) {
    throw std::invalid_argument("text for a model that does not take it; push " +
                                std::string(network_->info.tokens ? "token numbers" : "values"));
  }
  if (p.kind == Preprocessing::Kind::characters) {
    const size_t wrong = find_not_utf8(text);
    if (wrong != std::string_view::npos) {
      throw std::invalid_argument(fmt::format("byte {}: {}", wrong, not_utf8_message(text, wrong)));
    }
  }
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  std::vector<int64_t> numbers(static_cast<size_t>(p.length(bytes)));
  p.write_tokens(bytes, numbers.data());
  return {numbers.begin(), numbers.end()};
}

}  // namespace rotrnn::runtime
