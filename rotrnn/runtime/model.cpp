#include "rotrnn/runtime/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/runtime/packed_model.h"

namespace rotrnn::runtime {
namespace {

int64_t count_numbers(const ModelFile& file) {
  int64_t count = 0;
  ModelFile::each_tensor(file, [&](const std::string&, Numbers numbers, const auto&, bool) {
    count += std::ssize(numbers);
  });
  return count;
}

ModelInfo info_of(const ModelFile& file) {
  const Preprocessing& p = file.preprocessing;
  ModelInfo info;
  info.layer = file.layer;
  info.activation = name_of(file.activation);
  info.task = file.task;
  info.version = file.version;
  info.system = file.features ? "features" : file.channels() ? "channel" : "diagonal";
  info.width = file.width;
  info.states = file.states();
  info.depth = std::ssize(file.blocks);
  info.degree = file.degree();
  info.parameters = count_numbers(file);
  info.bidirectional = file.bidirectional;
  info.pooling = file.pooling;
  info.tokens = p.tokens();
  info.inputs = file.shape.inputs;
  info.text = p.text();
  info.rate = p.form.rate;
  info.channels = p.form.names;
  info.keep_every = p.keep_every;
  info.max_length = p.max_length;
  info.classifies = file.shape.target == TargetKind::classes;
  info.outputs = file.shape.outputs;
  info.classes = file.classes;
  info.values = p.target_names;
  info.horizon = p.horizon;
  info.per_step = file.shape.per_token;
  info.towers = file.shape.towers;
  const FrontendOptions& f = file.frontend;
  if (!f.used()) return info;
  info.frontend = describe_frontend(f);
  info.window = frontend_samples(f, 0);
  info.hop = frontend_samples(f, 1) - info.window;
  return info;
}

// Lays the numbers of a file out for the kernels.
class Loader {
 public:
  Loader(const ModelFile& file, PackedModel& packed) : file_(file), packed_(packed) {}

  void run() {
    packed_.info = info_of(file_);
    packed_.preprocessing = file_.preprocessing;
    Preprocessing& p = packed_.preprocessing;
    if (!p.tokens()) {  // callers give natural units, and steps one after the other
      p.form.element = Element::f32;
      p.form.scale = 1;
    }
    packed_.simd = &kernels::table();
    set_config();
    set_frontend();
    if (file_.features) {
      set_features(*file_.features);
      packed_.head = pack(file_.head, file_.width);
      return;
    }
    set_encoder();
    for (const ModelFile::Block& block : file_.blocks) add_block(block);
    if (file_.shape.towers == 2) packed_.hidden = pack(file_.hidden, 4 * file_.width);
    packed_.head = pack(file_.head, file_.width);
  }

 private:
  void set_config() {
    kernels::BlockConfig& c = packed_.config;
    c.D = static_cast<size_t>(file_.width);
    c.S = static_cast<size_t>(file_.states());
    c.activation = file_.activation;
    c.norm = file_.norm;
    c.prenorm = file_.prenorm;
    c.bidirectional = file_.bidirectional;
    c.batch_statistics = false;
    c.keep = kernels::Keep::nothing;
  }

  void set_features(const FeatureNumbers& from) {
    kernels::FeatureBank& bank = packed_.features.emplace();
    bank.channels = packed_.token_inputs();
    bank.differences = from.differences;
    bank.taps = static_cast<size_t>(from.taps);
    bank.inputs.assign(from.inputs.begin(), from.inputs.end());
    bank.drive.assign(from.drive.begin(), from.drive.end());
    bank.theta.assign(from.theta.begin(), from.theta.end());
    bank.gamma_log.assign(from.gamma_log.begin(), from.gamma_log.end());
    bank.thresholds.assign(from.thresholds.begin(), from.thresholds.end());
    bank.prepare();
  }

  Linear pack(const LinearNumbers& numbers, int64_t inputs) {
    Linear linear;
    linear.inputs = static_cast<size_t>(inputs);
    linear.outputs = numbers.bias.size();
    linear.bias = numbers.bias.data();
    linear.packed =
        kernels::pack_weight(numbers.weight.data(), linear.inputs, linear.outputs, packed_.memory);
    return linear;
  }

  void set_frontend() {
    const FrontendOptions& f = file_.frontend;
    if (!f.used()) return;
    kernels::RotationParameters p;
    p.channels = static_cast<size_t>(file_.shape.inputs);
    p.bands = static_cast<size_t>(f.bands);
    p.hop = static_cast<size_t>(f.hop);
    p.theta = file_.theta.data();
    p.gamma_log = file_.gamma_log.data();
    p.mean = file_.mean.data();
    p.deviation = file_.deviation.data();
    packed_.frontend = Frontend(f, p, packed_.memory);
  }

  void set_encoder() {
    const size_t C = packed_.token_inputs(), D = packed_.D();
    const Numbers weight = file_.encoder.weight;
    if (packed_.info.tokens) {
      packed_.encoder = weight.data();
      return;
    }
    packed_.encoder_bias = file_.encoder.bias.data();
    auto* rows = packed_.memory.take<float>(C * D);
    for (size_t c = 0; c < C; ++c) {
      for (size_t d = 0; d < D; ++d) rows[c * D + d] = weight[d * C + c];
    }
    packed_.encoder = rows;
  }

  void add_block(const ModelFile::Block& block) {
    const kernels::BlockConfig& c = packed_.config;
    kernels::BlockParameters p;
    const auto pointer = [](Numbers numbers) { return numbers.empty() ? nullptr : numbers.data(); };
    p.norm_weight = pointer(block.norm_scale);
    p.norm_bias = pointer(block.norm_shift);
    p.value_weight = pointer(block.value.weight);
    p.value_bias = pointer(block.value.bias);
    p.gate_weight = pointer(block.gate.weight);
    p.gate_bias = pointer(block.gate.bias);
    if (const auto* channels = std::get_if<ChannelStepFields<Numbers>>(&block.system)) {
      kernels::ChannelStepLayer layer;
      point_to(*channels, layer);
      layer.orders = channels->orders;
      layer.liquid_inside = channels->liquid_inside;
      p.layer.D = layer.D;
      packed_.blocks.push_back(p);
      packed_.steps.emplace_back(c, p, layer, packed_.memory);
      return;
    }
    point_to(std::get<DiagonalFields<Numbers>>(block.system), p.layer);
    packed_.blocks.push_back(p);
    if (!c.bidirectional) packed_.steps.emplace_back(c, p, packed_.memory);
  }

  const ModelFile& file_;
  PackedModel& packed_;
};

// It distinguishes models and does not stop attackers: eight bytes at a time are enough.
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

Model::Model() : packed_(std::make_unique<PackedModel>()) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::make(const SafeTensorFile& file, const std::string& where) {
  std::shared_ptr<Model> model(new Model);
  model->packed_->file = read_model(file, where);
  Loader(model->packed_->file, *model->packed_).run();
  model->packed_->fingerprint = fingerprint_of(file);
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
  return packed_->info;
}

void Model::answer(std::span<float> logits) const {
  const ModelInfo& info = packed_->info;
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
  const Preprocessing& p = packed_->preprocessing;
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
  const Preprocessing& p = packed_->preprocessing;
  if (!packed_->info.text) {
    throw std::invalid_argument("text for a model that does not take it; push " +
                                std::string(packed_->info.tokens ? "token numbers" : "values"));
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
