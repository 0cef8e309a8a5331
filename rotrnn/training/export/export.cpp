#include "rotrnn/training/export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rotrnn/base/random.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/features/feature_tensors.h"
#include "rotrnn/network/frontend.h"
#include "rotrnn/network/reference/feature_twin.h"
#include "rotrnn/network/reference/reference_pass.h"
#include "rotrnn/network/tensors.h"
#include "rotrnn/runtime/packed_model.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/spec/model_file.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/version.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

// A batch norm in front of a system that mixes channels goes into W.
bool folds_norm(const ModelOptions& options) {
  return options.prenorm && options.norm == Norm::batch && !layer_kind(options.layer).channels;
}

// The norm of a block as a scale and a shift, in double: a batch norm with its running statistics.
struct Affine {
  std::vector<double> scale, shift;
};

Affine affine_of(const ModelOptions& m, const Weights& weights, const std::string& at) {
  const auto get = [&](const char* name) {
    const std::span<const float> found = weights.find(at + "norm." + name);
    return std::vector<double>(found.begin(), found.end());
  };
  Affine out{get("weight"), get("bias")};
  if (m.norm == Norm::layer) return out;
  const auto mean = get("running_mean"), variance = get("running_var");
  for (size_t d = 0; d < mean.size(); ++d) {
    out.scale[d] /= std::sqrt(variance[d] + kNormEpsilon);
    out.shift[d] -= mean[d] * out.scale[d];
  }
  return out;
}

// u = a ⊙ x + c in front: W' = W·diag(a), b' = b + W c, D' = D ⊙ a, e' = e + D ⊙ c.
void fold_norm(const Affine& norm, Diagonal<double>& s) {
  const auto D = static_cast<size_t>(s.width), rows = 2 * static_cast<size_t>(s.states);
  s.b.resize(rows);
  s.e.resize(D);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t d = 0; d < D; ++d) {
      s.b[i] += s.W[i * D + d] * norm.shift[d];
      s.W[i * D + d] *= norm.scale[d];
    }
  }
  for (size_t d = 0; d < D; ++d) {
    s.e[d] += s.D[d] * norm.shift[d];
    s.D[d] *= norm.scale[d];
  }
}

// The fields of a system in float32, kept by the file.
template <class From, class To>
void keep_system(const From& from, To& to, ModelFile& file) {
  to.width = from.width, to.states = from.states;
  each_pair(from, to, [&](const char*, const auto& values, Numbers& numbers) {
    numbers = file.keep(values);
  });
}

// Empty where the network has no such map.
LinearNumbers keep_linear(const Weights& weights, const std::string& name, ModelFile& file) {
  return {file.keep(weights.find(name + ".weight")), file.keep(weights.find(name + ".bias"))};
}

// A block without what training needed and the network does not.
ModelFile::Block fold_block(const ModelOptions& m, size_t block, Weights& weights,
                            ModelFile& file) {
  const std::string at = fmt::format("blocks.{}.", block);
  Recurrence recurrence = layer_kind(m.layer).recurrence(m, layer_values(m, block, weights), true);
  const Affine norm = affine_of(m, weights, at);
  ModelFile::Block out;
  if (auto* diagonal = std::get_if<Diagonal<double>>(&recurrence)) {
    if (folds_norm(m)) fold_norm(norm, *diagonal);
    keep_system(*diagonal, out.system.emplace<0>(), file);
  } else {
    const auto& channels = std::get<ChannelSteps>(recurrence);
    auto& system = out.system.emplace<1>();
    keep_system(channels, system, file);
    system.orders = channels.orders;
    system.liquid_inside = channels.liquid_inside;
  }
  if (!folds_norm(m)) {
    out.norm_scale = file.keep(norm.scale);
    out.norm_shift = file.keep(norm.shift);
  }
  out.value = keep_linear(weights, at + "value", file);
  out.gate = keep_linear(weights, at + "gate", file);
  return out;
}

// A fitted network, which has nothing to multiply out.
void keep_features(const ModelOptions& m, const Weights& weights, ModelFile& file) {
  const kernels::FeatureBank bank =
      feature_bank(m, frontend_channels(m.frontend, file.shape.inputs), weights);
  FeatureNumbers& f = file.features.emplace();
  f.states = m.features.states;
  f.taps = m.features.taps;
  f.differences = m.features.differences;
  f.theta = file.keep(bank.theta);
  f.gamma_log = file.keep(bank.gamma_log);
  f.drive = file.keep(bank.drive);
  f.thresholds = file.keep(bank.thresholds);
  f.inputs = file.keep(bank.inputs);
  file.layer = "features";
  file.width = 6 * f.states;
  file.norm = Norm::none;
  file.head = keep_linear(weights, "head", file);
}

ModelFile fold(const CheckpointHeader& header, Network& network) {
  const ModelOptions& m = network.options();
  Weights& weights = network.weights();
  ModelFile file;
  file.layer = m.layer;
  file.task = header.config.task.name;
  file.version = kVersion;
  file.width = m.width;
  file.activation = m.activation;
  file.norm = folds_norm(m) ? Norm::none : m.norm;
  file.prenorm = m.prenorm;
  file.bidirectional = m.bidirectional;
  file.pooling = m.pooling;
  file.shape = header.facts.shape;
  if (file.shape.target == TargetKind::classes) file.classes = header.facts.classes;
  file.preprocessing = header.facts.preprocessing;
  file.frontend = m.frontend;
  file.theta = file.keep(weights.find("frontend.theta"));
  file.gamma_log = file.keep(weights.find("frontend.gamma_log"));
  file.mean = file.keep(weights.find("frontend.mean"));
  file.deviation = file.keep(weights.find("frontend.deviation"));
  if (m.body == Body::features) {
    keep_features(m, weights, file);
    return file;
  }
  file.encoder = keep_linear(weights, "encoder", file);
  for (int64_t i = 0; i < m.depth; ++i) {
    file.blocks.push_back(fold_block(m, static_cast<size_t>(i), weights, file));
  }
  file.hidden = keep_linear(weights, "hidden", file);
  file.head = keep_linear(weights, "head", file);
  return file;
}

// Random sequences of ragged lengths, in natural units or as token numbers.
struct Trial {
  std::vector<int64_t> offsets{0};
  std::vector<float> values;
  std::vector<int32_t> tokens;
};

Trial make_trial(const FrontendOptions& frontend, const TaskFacts& facts) {
  const Preprocessing& p = facts.preprocessing;
  const int64_t C = facts.shape.inputs;
  Random random(0, RandomSite::trial);
  Trial trial;
  std::vector<int64_t> wishes{96, 1, 257, 40};
  if (frontend.used()) {  // of several tokens, of less than one, with a rest
    wishes = {p.keep_every * frontend_samples(frontend, 5), 1,
              p.keep_every * frontend_samples(frontend, 11) + 1, frontend_samples(frontend, 2)};
  }
  for (const int64_t wish : wishes) {
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

// What the network computes in double, by the plain twins.
std::vector<double> truth(Network& network, const TaskFacts& facts, const Trial& trial) {
  Preprocessing p = facts.preprocessing;
  std::vector<int64_t> offsets = trial.offsets;
  std::vector<int64_t> tokens(trial.tokens.begin(), trial.tokens.end());
  std::vector<float> values;
  if (!p.tokens()) {
    p.form.element = Element::f32;
    p.form.scale = 1;
    offsets = {0};
    const auto C = static_cast<size_t>(facts.shape.inputs);
    for (size_t i = 0; i + 1 < trial.offsets.size(); ++i) {
      const auto begin = static_cast<size_t>(trial.offsets[i]) * C;
      const auto end = static_cast<size_t>(trial.offsets[i + 1]) * C;
      const auto bytes = std::as_bytes(std::span(trial.values).subspan(begin, end - begin));
      offsets.push_back(offsets.back() + p.length(bytes));
      values.resize(static_cast<size_t>(offsets.back()) * C);
      p.write_values(bytes, values.data() + static_cast<size_t>(offsets[i]) * C);
    }
  }
  if (network.options().body == Body::features) {
    return feature_twin(network.options(), network.shape(), network.weights(),
                        {offsets, tokens, values});
  }
  const NetworkLayers layers(network.options(), network.weights());
  LayerMaps maps;
  maps.forward(network.options(), layers.values,
               longest_tokens(network.options().frontend, offsets), thread_count(0), false);
  ReferencePass pass;
  return pass.forward(network.options(), network.shape(), {}, network.weights(), maps,
                      {{offsets, tokens, values}, Mode::evaluate, {}, {}});
}

void compare(Network& network, const TaskFacts& facts,
             const std::shared_ptr<const runtime::Model>& loaded, ExportReport& report) {
  report.parameters = loaded->info().parameters;
  const Trial trial = make_trial(network.options().frontend, facts);
  runtime::Scorer scorer(loaded);
  const std::vector<float> given = facts.preprocessing.tokens()
                                       ? scorer.score_tokens(trial.tokens, trial.offsets)
                                       : scorer.score(trial.values, trial.offsets);
  const std::vector<double> exact = truth(network, facts, trial);
  if (exact.size() != given.size()) {
    throw std::runtime_error(
        fmt::format("the file gives {} logits, the network {}", given.size(), exact.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const double difference = std::abs(exact[i] - static_cast<double>(given[i]));
    if (!std::isfinite(exact[i]) || !std::isfinite(given[i])) {
      throw std::runtime_error(fmt::format(
          "the network gives {:g} and the folded model {:g}, so it was not written; the weights "
          "overflow: train again with a smaller training.global_lr",
          exact[i], given[i]));
    }
    report.difference = std::max(report.difference, difference);
    report.largest = std::max(report.largest, std::abs(exact[i]));
  }
  // Float32 through a deep network: 1e-6 to 1e-5 of the largest logit is usual. Counts of a fitted
  // network go by whole steps: a value within a rounding of its threshold moves one.
  const double allowed = network.options().body == Body::features ? 2e-2 : 1e-3;
  if (!(report.difference <= allowed * std::max(1.0, report.largest))) {
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
  Network network = load_network(checkpoint, {});
  FoldedRun out;
  out.bytes = model_bytes(fold(header, network), run.string());
  out.report.step = header.state.step;
  out.report.bytes = std::ssize(out.bytes);
  const auto loaded = runtime::Model::from_bytes(out.bytes, run.string());
  out.report.streams = loaded->packed().whole_only().empty();
  compare(network, header.facts, loaded, out.report);
  return out;
}

ExportReport export_model(const ExportRequest& request) {
  check_free(request.out, request.overwrite);
  const FoldedRun folded = fold_run(request.run, request.which);
  write_file_atomically(request.out, folded.bytes);
  return folded.report;
}

}  // namespace rotrnn
