#include "rotrnn/training/export/export.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <optional>

#include "rotrnn/base/random.h"
#include "rotrnn/network/reference/reference_pass.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/runtime/stream.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "tests/support/folder.h"

// Exported models against the network they come from, by its twins in double: whole sequences, and
// streams at every prefix.

namespace rotrnn {
namespace {

using test::Folder;
using test::message_of;
using Doubles = std::vector<double>;

struct Case {
  std::string name;
  std::function<void(ModelOptions&)> change;
  bool tokens = false, pairs = false;
};

const std::vector<Case>& cases() {
  using M = ModelOptions;
  static const std::vector<Case> all = {
      {"rotrnn", [](M&) {}},
      {"rotrnn_odd_heads", [](M& m) { m.state = 15, m.rotrnn.heads = 3; }},
      {"rotrnn_stationary", [](M& m) { m.rotrnn.stationary_start = true; }},
      {"rotrnn_alpha", [](M& m) { m.rotrnn.normalisation = Normalisation::alpha; }},
      {"rotrnn_tokens", [](M&) {}, true},
      {"rotrnn_last", [](M& m) { m.pooling = Pooling::last; }},
      {"rotrnn_steps", [](M& m) { m.pooling = Pooling::none; }},
      {"rotrnn_postnorm", [](M& m) { m.prenorm = false; }},
      {"rotrnn_layer_norm", [](M& m) { m.norm = Norm::layer; }},
      {"rotrnn_layer_postnorm", [](M& m) { m.norm = Norm::layer, m.prenorm = false; }},
      {"rotrnn_full_glu", [](M& m) { m.activation = Activation::full_glu; }},
      {"rotrnn_half_glu2", [](M& m) { m.activation = Activation::half_glu2; }},
      {"rotrnn_gelu", [](M& m) { m.activation = Activation::gelu; }},
      {"rotrnn_exact_glu", [](M& m) { m.activation = Activation::exact_glu; }},
      {"rotrnn_bidirectional", [](M& m) { m.bidirectional = true; }},
      {"rotrnn_bidirectional_stationary",
       [](M& m) { m.bidirectional = true, m.rotrnn.stationary_start = true; }},
      {"rotrnn_pairs", [](M&) {}, true, true},
      {"lru", [](M& m) { m.layer = "lru"; }},
      {"lru_steps", [](M& m) { m.layer = "lru", m.pooling = Pooling::none; }},
      {"lru_bidirectional", [](M& m) { m.layer = "lru", m.bidirectional = true; }},
      {"s5", [](M& m) { m.layer = "s5"; }},
      {"s5_steps", [](M& m) { m.layer = "s5", m.pooling = Pooling::none; }},
      {"s5_bidirectional", [](M& m) { m.layer = "s5", m.bidirectional = true; }},
  };
  return all;
}

// The layers whose channels do not meet, in all that sets them apart.
std::vector<Case> channel_cases() {
  using M = ModelOptions;
  using Change = std::function<void(M&)>;
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const char* layer, const Change& change,
                       bool tokens = false, bool pairs = false) {
    all.push_back({name,
                   [=](M& m) {
                     m.layer = layer;
                     m.activation = Activation::exact_glu;
                     change(m);
                   },
                   tokens, pairs});
  };
  const std::pair<const char*, Change> variants[] = {
      {"", [](M&) {}},
      {"_wide", [](M& m) { m.width = 35, m.depth = 2; }},
      {"_odd", [](M& m) { m.state = 7; }},
      {"_last", [](M& m) { m.pooling = Pooling::last; }},
      {"_steps", [](M& m) { m.pooling = Pooling::none; }},
      {"_postnorm", [](M& m) { m.prenorm = false; }},
      {"_layer_norm", [](M& m) { m.norm = Norm::layer; }},
      {"_layer_postnorm", [](M& m) { m.norm = Norm::layer, m.prenorm = false; }},
      {"_half_glu1", [](M& m) { m.activation = Activation::half_glu1; }},
      {"_half_glu2", [](M& m) { m.activation = Activation::half_glu2; }},
      {"_full_glu", [](M& m) { m.activation = Activation::full_glu; }},
      {"_gelu", [](M& m) { m.activation = Activation::gelu; }},
      {"_bidirectional", [](M& m) { m.bidirectional = true; }},
      {"_bidirectional_steps", [](M& m) { m.bidirectional = true, m.pooling = Pooling::none; }},
      {"_tied", [](M& m) { m.s4d.tied = m.s4.tied = true; }},
      {"_long", [](M& m) { m.s4.max_length = 300; }},  // C is kept as C̃
      {"_long_bidirectional", [](M& m) { m.s4.max_length = 300, m.bidirectional = true; }},
  };
  for (const char* layer : {"s4d", "s4", "liquid_s4"}) {
    for (const auto& [name, change] : variants) add(std::string(layer) + name, layer, change);
    add(
        std::string(layer) + "_tokens", layer, [](M&) {}, true);
    add(
        std::string(layer) + "_pairs", layer, [](M&) {}, true, true);
  }
  for (const auto init : {S4DInit::lin, S4DInit::inv, S4DInit::legs}) {
    for (const auto rule : {Discretisation::zoh, Discretisation::bilinear}) {
      add("s4d_init" + std::to_string(static_cast<int>(init)) + "_rule" +
              std::to_string(static_cast<int>(rule)),
          "s4d", [=](M& m) { m.s4d.init = init, m.s4d.discretisation = rule; });
    }
  }
  for (const auto form : {LiquidForm::pb, LiquidForm::kb}) {
    for (const auto coefficient : {LiquidCoefficient::power, LiquidCoefficient::reference}) {
      for (const int64_t degree : {2, 3, 4}) {
        for (const bool bidirectional : {false, true}) {
          add("liquid_s4_form" + std::to_string(static_cast<int>(form)) + "_coefficient" +
                  std::to_string(static_cast<int>(coefficient)) + "_degree" +
                  std::to_string(degree) + (bidirectional ? "_bidirectional" : ""),
              "liquid_s4", [=](M& m) {
                m.liquid_s4.form = form, m.liquid_s4.coefficient = coefficient;
                m.liquid_s4.degree = degree, m.bidirectional = bidirectional;
                m.s4.max_length = degree == 3 ? 100 : 0;
              });
        }
      }
    }
  }
  return all;
}

// Networks whose running statistics, biases and skips are not what they start with: otherwise
// folding them in would show nothing.
void stir(Weights& weights) {
  Random random(5, RandomSite::trial);
  for (const auto& p : weights.layout().parameters) {
    const auto add = [&](double scale) {
      for (float& x : weights.parameters().of(p)) x += static_cast<float>(scale * random.normal());
    };
    if (p.name.ends_with("bias") || p.name.ends_with("norm.weight")) add(0.3);
    // Channels are no longer alike.
    for (const char* part : {".A_im", ".P_re", ".P_im", ".B_re", ".B_im"}) {
      if (p.name.ends_with(part)) add(0.1);
    }
  }
  for (const auto& b : weights.layout().buffers) {
    for (float& x : weights.find(b.integer ? "" : b.name)) {
      if (b.name.ends_with("running_mean")) x = static_cast<float>(0.5 * random.normal());
      if (b.name.ends_with("running_var")) x = static_cast<float>(0.3 + 1.7 * random.uniform());
    }
  }
}

class Export : public testing::TestWithParam<Case> {
 protected:
  Export() {
    const Case& c = GetParam();
    ModelOptions& m = header_.config.model;
    m.width = 10;
    m.state = 16;
    m.rotrnn.heads = 4;
    m.depth = 3;
    m.s5.blocks = 2;
    m.rotrnn.init.gamma_min = 0.9;
    m.rotrnn.init.theta_max = 3;
    m.pooling = Pooling::mean;
    c.change(m);
    if (m.pooling == Pooling::none) {
      header_.config.task.name = "series";
      header_.config.task.path = "x.csv";
      header_.config.task.target = TaskTarget::token_label;
    }
    TaskFacts& f = header_.facts;
    f.typical_length = 40;
    f.classes = {"a", "b", "c"};
    Preprocessing& p = f.preprocessing;
    p.form.towers = c.pairs ? 2 : 1;
    f.shape = {c.tokens ? InputKind::tokens : InputKind::channels,
               c.tokens ? 7 : 2,
               TargetKind::classes,
               3,
               p.form.towers,
               m.pooling == Pooling::none};
    if (c.tokens) {
      p.kind = Preprocessing::Kind::ids;
      p.vocabulary = {"a", "b", "c", "d", "e", "f", "g"};
    } else {
      p.kind = Preprocessing::Kind::values;
      p.form.element = Element::f32;
      p.form.channels = 2;
      p.mean = {0.5, -3};
      p.deviation = {2, 0.25};
    }
    network_.emplace(m, f.shape, 3);
    stir(network_->weights());
    std::filesystem::create_directories(folder_.path());
    save_checkpoint(folder_ / "best", network_->weights(), nullptr, header_);
    report_ = export_model({folder_.path(), folder_ / "m.safetensors", Which::best, false});
    model_ = runtime::Model::load(folder_ / "m.safetensors");
  }

  // Steps in natural units or token numbers, drawn anew; float32 has them normalised, too.
  void draw(int64_t steps) {
    Random random(static_cast<uint64_t>(steps), RandomSite::trial);
    for (int64_t i = 0; i < 2 * steps; ++i) {
      if (GetParam().tokens) {
        if (i < steps) tokens_.push_back(random.below(7));
        continue;
      }
      const auto x = static_cast<float>(std::round(4096 * random.normal()) / 4096);
      normal_.push_back(x);
      values_.push_back(i % 2 == 0 ? 2 * x + 0.5f : x / 4 - 3);
    }
    numbers_.assign(tokens_.begin(), tokens_.end());
  }

  // Logits of the network in double; by its pooling, or token by token.
  Doubles truth(const std::vector<int64_t>& offsets, Pooling pooling) {
    ModelOptions m = network_->options();
    m.pooling = pooling;
    LayerMaps maps;
    const NetworkLayers layers(m, network_->weights());
    maps.forward(m, layers.values, longest_of(offsets), 1, false);
    DataShape shape = network_->shape();
    ReferencePass pass;
    return pass.forward(m, shape, {}, network_->weights(), maps,
                        {{offsets, tokens_, normal_}, Mode::evaluate, {}, {}});
  }

  void push(runtime::Stream& stream, size_t begin, size_t count, std::span<float> each = {}) {
    if (GetParam().tokens) {
      stream.push_tokens(std::span(numbers_).subspan(begin, count), each);
    } else {
      stream.push(std::span(values_).subspan(2 * begin, 2 * count), each);
    }
  }

  // Float32 through three blocks; the largest seen over all cases is 1.4e-6.
  static constexpr double kBound = 1e-5;

  void expect_near(std::span<const float> got, const Doubles& exact, const std::string& what) {
    ASSERT_EQ(got.size(), exact.size()) << what;
    double scale = 1, worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      scale = std::max(scale, std::abs(exact[i]));
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - exact[i]));
      ASSERT_TRUE(std::isfinite(got[i])) << what;
    }
    EXPECT_LE(worst, kBound * scale) << what;
    largest_ = std::max(largest_, worst / scale);
  }

  const Folder folder_;
  CheckpointHeader header_;
  std::optional<Network> network_;
  ExportReport report_;
  std::shared_ptr<const runtime::Model> model_;
  std::vector<int64_t> tokens_;
  std::vector<int32_t> numbers_;
  std::vector<float> values_, normal_;
  double largest_ = 0;
};

TEST_P(Export, ScoresWholeSequences) {
  EXPECT_LE(report_.difference, kBound * std::max(1.0, report_.largest));
  draw(700);
  const std::vector<int64_t> offsets = {0, 1, 98, 194, 695, 698, 700};
  const Doubles exact = truth(offsets, network_->options().pooling);
  for (const int threads : {1, 2, 3, 8}) {
    runtime::Scorer scorer(model_, threads);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto got = GetParam().tokens ? scorer.score_tokens(numbers_, offsets)
                                         : scorer.score(values_, offsets);
      expect_near(got, exact, "threads " + std::to_string(threads));
    }
  }
  RecordProperty("largest_error", std::to_string(largest_));
}

TEST_P(Export, StreamsEqualSequenceModeAtEveryPrefix) {
  const auto& m = header_.config.model;
  if (m.bidirectional || GetParam().pairs) {
    const std::string message =
        message_of<std::invalid_argument>([&] { runtime::Stream stream(model_); });
    EXPECT_NE(message.find("score"), std::string::npos) << message;
    return;
  }
  constexpr size_t kSteps = 1100, K = 3;
  draw(kSteps);
  // The head is linear, so that the logits of a prefix are the mean of those of its tokens.
  Doubles exact = truth({0, kSteps}, Pooling::none);
  if (m.pooling == Pooling::mean) {
    for (size_t t = 1; t < kSteps; ++t) {
      const auto count = static_cast<double>(t + 1);
      for (size_t k = 0; k < K; ++k) {
        exact[K * t + k] = (exact[K * t + k] + (count - 1) * exact[K * (t - 1) + k]) / count;
      }
    }
  }
  for (const size_t chunk : {1, 7, 64, 1000, 0}) {  // 0: random
    Random random(chunk, RandomSite::trial);
    runtime::Stream stream(model_);
    std::vector<float> each(K * kSteps);
    for (size_t at = 0; at < kSteps;) {
      const size_t wish = chunk != 0 ? chunk : 1 + static_cast<size_t>(random.below(90));
      const size_t count = std::min<size_t>(wish, kSteps - at);
      push(stream, at, count, std::span(each).subspan(K * at, K * count));
      at += count;
      if (at > 500 && at < 600) {  // goes on in another stream from what was saved
        std::vector<std::byte> state(stream.state_size());
        stream.save(state);
        stream = runtime::Stream(model_, 5);
        stream.restore(state);
      }
      const auto now = stream.logits();
      for (size_t k = 0; k < K; ++k) {
        ASSERT_NEAR(now[k], each[K * (at - 1) + k], 1e-5 * std::max(1.0f, std::abs(now[k])));
      }
    }
    EXPECT_EQ(stream.steps(), static_cast<int64_t>(kSteps));
    expect_near(each, exact, "chunks of " + std::to_string(chunk));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Export, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Channels, Export, testing::ValuesIn(channel_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(ExportModel, RefusesWhatItCannotDoAndLeavesNoFile) {
  const Folder folder;
  const auto out = folder / "m.safetensors";
  EXPECT_NE(message_of<std::runtime_error>([&] {
              export_model({folder / "no_run", out, Which::best, false});
            }).find("there is no such run folder"),
            std::string::npos);
  std::ofstream(out) << "mine";
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              export_model({folder / "no_run", out, Which::best, false});
            }).find("--force"),
            std::string::npos);
  std::string kept;
  std::ifstream(out) >> kept;
  EXPECT_EQ(kept, "mine");
}

TEST(ExportModel, RefusesLiquidTermsThatAreNotCausal) {
  const Folder folder;
  CheckpointHeader header;
  ModelOptions& m = header.config.model;
  m.layer = "liquid_s4", m.width = 4, m.state = 4, m.depth = 1;
  m.liquid_s4.mode = LiquidMode::reference;
  header.facts.classes = {"a", "b"};
  header.facts.preprocessing.vocabulary = {"x", "y"};
  header.facts.shape = {InputKind::tokens, 2, TargetKind::classes, 2};
  const Network network(m, header.facts.shape, 1);
  save_checkpoint(folder / "best", network.weights(), nullptr, header);
  const auto out = folder / "m.safetensors";
  const std::string message = message_of<std::invalid_argument>([&] {
    export_model({folder.path(), out, Which::best, false});
  });
  EXPECT_NE(message.find("is not exported"), std::string::npos) << message;
  EXPECT_NE(message.find("model.liquid_s4.mode = \"causal\""), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(ExportModel, RefusesWeightsThatAreNotFinite) {
  const Folder folder;
  CheckpointHeader header;
  ModelOptions& m = header.config.model;
  m.width = 4, m.state = 4, m.rotrnn.heads = 2, m.depth = 1;
  header.facts.classes = {"a", "b"};
  header.facts.preprocessing.vocabulary = {"x", "y"};
  header.facts.shape = {InputKind::tokens, 2, TargetKind::classes, 2};
  Network network(m, header.facts.shape, 1);
  network.weights().find("head.weight")[0] = NAN;
  save_checkpoint(folder / "best", network.weights(), nullptr, header);
  const auto out = folder / "m.safetensors";
  EXPECT_NE(message_of<std::runtime_error>([&] {
              export_model({folder.path(), out, Which::best, false});
            }).find("head.weight"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out.string() + ".unchecked"));
}

}  // namespace
}  // namespace rotrnn
