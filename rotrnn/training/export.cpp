#include "rotrnn/training/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/kernels/random.h"
#include "rotrnn/layers/channel_layer.h"
#include "rotrnn/runtime/network.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/training/network.h"
#include "rotrnn/training/tensor_file.h"
#include "rotrnn/version.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

constexpr const char* kActivations[] = {"half_glu1", "full_glu", "half_glu2", "gelu", "exact_glu"};
constexpr const char* kPoolings[] = {"mean", "last", "none"};

const ChannelLayer* channel_layer(const BlockImpl& block) {
  return dynamic_cast<const ChannelLayer*>(block.layer.get());
}

// A batch norm in front of a system that mixes channels goes into W.
bool folds_norm(const ModelOptions& options, const BlockImpl& block) {
  return options.prenorm && options.norm == NormKind::batch && channel_layer(block) == nullptr;
}

NamedTensors diagonal_parts(const ModelOptions& options, BlockImpl& block) {
  System s = diagonal(*block.layer).system();
  if (folds_norm(options, block)) {
    const auto [a, c] = block.norm->affine();
    const auto plus = [](const Tensor& x, const Tensor& y) { return x.defined() ? x + y : y; };
    s.b = plus(s.b, s.W.matmul(c));
    s.e = plus(s.e, s.D * c);
    s.W = s.W * a;
    s.D = s.D * a;
  }
  return {{"lambda_re", s.lambda_re},
          {"lambda_im", s.lambda_im},
          {"W", s.W},
          {"V", s.V},
          {"V_reverse", s.V_reverse},
          {"D", s.D},
          {"b", s.b},
          {"e", s.e},
          {"start_re", s.start_re},
          {"start_im", s.start_im}};
}

NamedTensors channel_parts(const ChannelRecurrence& r) {
  NamedTensors out{{"D", r.D}, {"liquid", r.liquid}};
  const std::pair<std::string, Tensor> complex[] = {
      {"lambda", r.lambda}, {"c", r.c}, {"c_reverse", r.c_reverse},
      {"p", r.p},           {"q", r.q}, {"b", r.b}};
  for (const auto& [name, tensor] : complex) {
    if (!tensor.defined()) continue;
    out.emplace_back(name + "_re", torch::real(tensor));
    out.emplace_back(name + "_im", torch::imag(tensor));
  }
  return out;
}

// The tensors of a block; what training needed and the network does not is multiplied out.
void fold_block(const std::string& at, const ModelOptions& options, BlockImpl& block,
                NamedTensors& out) {
  const ChannelLayer* channels = channel_layer(block);
  NamedTensors tensors =
      channels != nullptr ? channel_parts(channels->recurrence()) : diagonal_parts(options, block);
  if (!folds_norm(options, block)) {
    const auto [a, c] = block.norm->affine();
    tensors.emplace_back("norm.scale", a);
    tensors.emplace_back("norm.shift", c);
  }
  if (block.value) {
    tensors.emplace_back("value.weight", block.value->weight);
    tensors.emplace_back("value.bias", block.value->bias);
  }
  if (block.gate) {
    tensors.emplace_back("gate.weight", block.gate->weight);
    tensors.emplace_back("gate.bias", block.gate->bias);
  }
  for (const auto& [name, tensor] : tensors) {
    if (tensor.defined()) out.emplace_back(at + name, tensor);
  }
}

NamedTensors fold(SequenceModelImpl& model, const ModelOptions& options) {
  torch::NoGradGuard no_grad;
  NamedTensors out;
  out.emplace_back("encoder.weight",
                   model.embedding ? model.embedding->weight : model.linear->weight);
  if (model.linear) out.emplace_back("encoder.bias", model.linear->bias);
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    fold_block(fmt::format("blocks.{}.", i), options, *model.blocks[i], out);
  }
  if (model.hidden) {
    out.emplace_back("hidden.weight", model.hidden->weight);
    out.emplace_back("hidden.bias", model.hidden->bias);
  }
  out.emplace_back("head.weight", model.head->weight);
  out.emplace_back("head.bias", model.head->bias);
  for (auto& [name, tensor] : out) tensor = tensor.to(torch::kFloat32).contiguous();
  return out;
}

std::string description(const CheckpointHeader& header, const SequenceModelImpl& model,
                        const NamedTensors& tensors) {
  const ModelOptions& m = header.config.model;
  const DataShape& shape = header.facts.shape;
  const BlockImpl& block = *model.blocks.front();
  const bool channels = channel_layer(block) != nullptr, folds = folds_norm(m, block);
  int64_t states = 0, degree = 1;
  for (const auto& [name, tensor] : tensors) {
    if (name == "blocks.0.lambda_re") states = tensor.size(-1);
    if (name == "blocks.0.liquid") degree = 1 + tensor.size(0);
  }
  nlohmann::ordered_json json = {
      {"system", channels ? "channel" : "diagonal"},
      {"layer", m.layer},
      {"task", header.config.task.name},
      {"version", kVersion},
      {"width", m.width},
      {"states", states},
      {"depth", m.depth},
      {"activation", kActivations[static_cast<size_t>(m.activation)]},
      {"norm", m.norm == NormKind::layer ? "layer"
               : folds                   ? "none"
                                         : "affine"},
      {"prenorm", m.prenorm},
      {"bidirectional", m.bidirectional},
      {"pooling", kPoolings[static_cast<size_t>(m.pooling)]},
      {"input", shape.input == InputKind::tokens ? "tokens" : "values"},
      {"inputs", shape.inputs},
      {"target", shape.target == TargetKind::classes ? "classes" : "values"},
      {"outputs", shape.outputs},
      {"towers", shape.towers},
      {"per_token", shape.per_token},
      {"classes",
       shape.target == TargetKind::classes ? header.facts.classes : std::vector<std::string>{}},
      {"preprocessing", to_json(header.facts.preprocessing)}};
  if (channels) {
    const bool inside = m.liquid_s4.form == LiquidForm::kb;
    json["degree"] = degree;
    json["liquid"] = degree == 1 ? "none" : inside ? "kb" : "pb";
  }
  return json.dump();
}

// Random sequences of ragged lengths, in natural units or as token numbers.
struct Trial {
  std::vector<int64_t> offsets{0};
  std::vector<float> values;
  std::vector<int32_t> tokens;
};

Trial make_trial(const TaskFacts& facts) {
  const Preprocessing& p = facts.preprocessing;
  const int64_t C = facts.shape.inputs;
  Random random(0, RandomSite::trial);
  Trial trial;
  for (const int64_t wish : {96, 1, 257, 40}) {
    int64_t steps = p.order.empty() ? wish : std::ssize(p.order) * p.keep_every;
    if (p.per_step) steps = std::min(steps, p.max_length);
    trial.offsets.push_back(trial.offsets.back() + steps);
    for (int64_t t = 0; t < steps; ++t) {
      if (p.tokens()) {
        trial.tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(C))));
        continue;
      }
      for (int64_t c = 0; c < C; ++c) {
        const auto at = static_cast<size_t>(p.per_step ? t : c);
        trial.values.push_back(static_cast<float>(p.mean[at] + p.deviation[at] * random.normal()));
      }
    }
  }
  return trial;
}

// What the network says in double, by the reference path.
Tensor truth(SequenceModelImpl& model, const TaskFacts& facts, const Trial& trial) {
  Preprocessing p = facts.preprocessing;
  if (p.tokens()) {
    const Tensor tokens = torch::tensor(trial.tokens, torch::kInt64);
    return model.forward(Packed(tokens, trial.offsets)).y;
  }
  p.form.element = Element::f32;
  p.form.scale = 1;
  std::vector<int64_t> offsets{0};
  std::vector<float> values;
  const auto C = static_cast<size_t>(facts.shape.inputs);
  for (size_t i = 0; i + 1 < trial.offsets.size(); ++i) {
    const auto begin = static_cast<size_t>(trial.offsets[i]) * C;
    const auto end = static_cast<size_t>(trial.offsets[i + 1]) * C;
    const auto bytes = std::as_bytes(std::span(trial.values).subspan(begin, end - begin));
    offsets.push_back(offsets.back() + p.length(bytes));
    values.resize(static_cast<size_t>(offsets.back()) * C);
    p.write_values(bytes, values.data() + static_cast<size_t>(offsets[i]) * C);
  }
  const Tensor rows = torch::tensor(values, torch::kFloat64).view({-1, facts.shape.inputs});
  return model.forward(Packed(rows, offsets)).y;
}

void compare(SequenceModelImpl& model, const TaskFacts& facts,
             const std::shared_ptr<const runtime::Model>& loaded, ExportReport& report) {
  report.parameters = loaded->info().parameters;
  const Trial trial = make_trial(facts);
  runtime::Scorer scorer(loaded);
  const std::vector<float> said = facts.preprocessing.tokens()
                                      ? scorer.score_tokens(trial.tokens, trial.offsets)
                                      : scorer.score(trial.values, trial.offsets);
  torch::NoGradGuard no_grad;
  const Tensor exact = truth(model, facts, trial).contiguous();
  if (exact.numel() != std::ssize(said)) {
    throw std::runtime_error(
        fmt::format("the file gives {} logits, the network {}", said.size(), exact.numel()));
  }
  const auto* at = exact.data_ptr<double>();
  for (size_t i = 0; i < said.size(); ++i) {
    const double difference = std::abs(at[i] - said[i]);
    if (!std::isfinite(at[i]) || !std::isfinite(said[i])) {
      throw std::runtime_error(fmt::format(
          "the network says {:g} and the folded model {:g}, so it was not written; the weights "
          "overflow: train again with a smaller training.global_lr",
          at[i], said[i]));
    }
    report.difference = std::max(report.difference, difference);
    report.largest = std::max(report.largest, std::abs(at[i]));
  }
  // Float32 through a deep network: 1e-6 to 1e-5 of the largest logit is usual.
  if (!(report.difference <= 1e-3 * std::max(1.0, report.largest))) {
    throw std::runtime_error(fmt::format(
        "the folded model differs from the network by {:.2g} (largest logit {:.3g}), so "
        "it was not written; its weights may be too large for float32",
        report.difference, report.largest));
  }
}

}  // namespace

FoldedRun fold_run(const fs::path& run, Which which) {
  const Checkpoint checkpoint = read_checkpoint(find_checkpoint(run, which), Parts::weights);
  const CheckpointHeader& header = checkpoint.header;
  EngineOptions engine;
  engine.kernels = Kernels::reference;
  SequenceModel model = load_model(checkpoint, engine);
  model->to(torch::kFloat64);
  const NamedTensors tensors = fold(*model, header.config.model);
  FoldedRun out;
  out.bytes = safetensors_bytes(run, TensorBytes(tensors).views,
                                {{"format", "rotrnn-model"},
                                 {"format_version", "1"},
                                 {"model", description(header, *model, tensors)}});
  out.report.step = header.state.step;
  out.report.bytes = std::ssize(out.bytes);
  const auto loaded = runtime::Model::from_bytes(out.bytes, run.string());
  out.report.streams = loaded->network().whole_only().empty();
  compare(*model, header.facts, loaded, out.report);
  return out;
}

ExportReport export_model(const ExportRequest& request) {
  check_free(request.out, request.overwrite);
  const FoldedRun folded = fold_run(request.run, request.which);
  write_file_atomically(request.out, folded.bytes);
  return folded.report;
}

}  // namespace rotrnn
