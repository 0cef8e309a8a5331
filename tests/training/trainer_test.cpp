// Whole runs: the same for the same seed, resumed as unbroken, in parts as at once.

#include "rotrnn/training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/formats/safetensors.h"
#include "tests/support/folder.h"
#include "tests/support/numbers.h"
#include "tests/support/tiny_config.h"

namespace rotrnn {
namespace {

using test::Folder;
using test::tiny_config;

std::string metrics_without_clock(const std::filesystem::path& run) {
  std::istringstream in(read_file(run / "metrics.jsonl"));
  std::string out;
  for (std::string line; std::getline(in, line);) {
    auto json = nlohmann::ordered_json::parse(line);
    json.erase("seconds");
    json.erase("tokens_per_second");
    json.erase("memory_mb");
    out += json.dump() + "\n";
  }
  return out;
}

TEST(Train, TwoRunsOfOneSeedAreTheSame) {
  const Folder folder;
  const auto a = train({tiny_config(), folder / "a", false, {}}, {});
  const auto b = train({tiny_config(), folder / "b", false, {}}, {});
  EXPECT_TRUE(a.finished && b.finished);
  EXPECT_EQ(a.test.loss, b.test.loss);
  EXPECT_EQ(metrics_without_clock(folder / "a"), metrics_without_clock(folder / "b"));
  EXPECT_EQ(read_file(folder / "a/last/weights.safetensors"),
            read_file(folder / "b/last/weights.safetensors"));
  EXPECT_EQ(read_file(folder / "a/last/optimiser.safetensors"),
            read_file(folder / "b/last/optimiser.safetensors"));
  Config other = tiny_config();
  other.training.seed = 1;
  train({other, folder / "c", false, {}}, {});
  EXPECT_NE(read_file(folder / "a/last/weights.safetensors"),
            read_file(folder / "c/last/weights.safetensors"));
}

// Nor does the number of threads change a bit.
TEST(Train, AnyNumberOfThreadsIsTheSame) {
  const Folder folder;
  Config config = tiny_config();
  train({config, folder / "one", false, {}}, {});
  config.training.threads = 3;
  train({config, folder / "three", false, {}}, {});
  EXPECT_EQ(metrics_without_clock(folder / "one"), metrics_without_clock(folder / "three"));
  EXPECT_EQ(read_file(folder / "one/last/weights.safetensors"),
            read_file(folder / "three/last/weights.safetensors"));
}

TEST(Train, StoppedAndResumedEqualsUnbroken) {
  const Folder folder;
  train({tiny_config(), folder / "whole", false, {}}, {});
  int64_t stop_at = 0;
  TrainObserver observer;
  int64_t seen = 0;
  observer.step = [&](const StepReport& r) { seen = r.step; };
  observer.stop = [&] { return seen >= stop_at; };
  TrainRequest request{tiny_config(), folder / "parts", false, {}};
  for (const int64_t at : {1, 8, 13, 24}) {
    stop_at = at;
    const auto outcome = train(request, observer);
    EXPECT_EQ(outcome.step, at);
    EXPECT_EQ(outcome.finished, at == 24);
    request.resume = true;
  }
  for (const char* file : {"last/weights.safetensors", "last/optimiser.safetensors",
                           "last/state.json", "best/weights.safetensors"}) {
    EXPECT_EQ(read_file(folder / "whole" / file), read_file(folder / "parts" / file)) << file;
  }
  EXPECT_EQ(metrics_without_clock(folder / "whole"), metrics_without_clock(folder / "parts"));
}

TEST(Train, EveryLayerResumesAsUnbroken) {
  for (const char* layer : {"rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"}) {
    SCOPED_TRACE(layer);
    const Folder folder;
    Config config = tiny_config();
    config.model.layer = layer;
    config.model.s5.blocks = 2;
    config.model.s5.step_rescale = 1.5;
    config.model.lru.gamma = LruGamma::fixed;
    config.training.steps = 12;
    config.training.evaluate_every = 4;
    const auto whole = train({config, folder / "whole", false, {}}, {});
    TrainObserver observer;
    int64_t seen = 0;
    observer.step = [&](const StepReport& r) { seen = r.step; };
    observer.stop = [&] { return seen == 5; };
    train({config, folder / "parts", false, {}}, observer);
    const auto resumed = train({config, folder / "parts", true, {}}, {});
    EXPECT_EQ(resumed.test.loss, whole.test.loss);
    EXPECT_TRUE(std::isfinite(whole.test.loss));
    for (const char* file : {"last/weights.safetensors", "last/optimiser.safetensors"}) {
      EXPECT_EQ(read_file(folder / "whole" / file), read_file(folder / "parts" / file)) << file;
    }
    // The settings of the layer are read back from the checkpoint.
    EvaluationRequest request;
    request.run = folder / "whole";
    request.engine = config.training.engine();
    EXPECT_EQ(evaluate_run(request).scores.loss, whole.test.loss);
  }
}

// First moments after a run, by name.
std::map<std::string, std::vector<float>> first_moments(const std::filesystem::path& run) {
  const SafeTensorFile file(run / "last/optimiser.safetensors");
  std::map<std::string, std::vector<float>> out;
  for (const std::string& name : file.names()) {
    if (!name.starts_with("first.")) continue;
    const auto data = file.at(name).data;
    out[name].resize(data.size() / sizeof(float));
    std::memcpy(out[name].data(), data.data(), data.size());
  }
  EXPECT_FALSE(out.empty());
  return out;
}

TEST(Train, AccumulationWithLayerNormEqualsTheWholeBatch) {
  const Folder folder;
  for (const auto weights : {ClassWeights::none, ClassWeights::balanced}) {
    Config config = tiny_config();
    config.model.norm = Norm::layer;
    config.training.steps = 3;
    config.training.evaluate_every = 3;
    config.training.class_weights = weights;
    const std::string name = weights == ClassWeights::none ? "" : "balanced";
    train({config, folder / (name + "a"), false, {}}, {});
    config.training.accumulate = 4;
    train({config, folder / (name + "b"), false, {}}, {});
    const auto a = first_moments(folder / (name + "a")), b = first_moments(folder / (name + "b"));
    for (const auto& [tensor, expected] : a) {
      EXPECT_LE(testing::relative_error(b.at(tensor), expected, 1e-6), 1e-3) << tensor;
    }
  }
}

// A gradient that is longer than the limit is made as long as it: the first moments of one step are
// a tenth of it.
TEST(Train, ClippingBoundsTheGradient) {
  const Folder folder;
  Config config = tiny_config();
  config.training.steps = 1;
  const auto length = [&](double clip) {
    config.training.clip = clip;
    const auto run = folder / ("clip" + std::to_string(clip));
    train({config, run, false, {}}, {});
    double square = 0;
    for (const auto& [name, values] : first_moments(run)) {
      for (const float x : values) square += static_cast<double>(x) * static_cast<double>(x);
    }
    return 10 * std::sqrt(square);
  };
  const double whole = length(0);
  ASSERT_GT(whole, 0.1);
  EXPECT_NEAR(length(0.1), 0.1, 1e-6);
  EXPECT_EQ(length(2 * whole), whole);
}

}  // namespace
}  // namespace rotrnn
