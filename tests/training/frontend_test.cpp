// A front end in whole runs: what it learns before the first step, and that runs stay the same for
// any threads, after a resume, and from the weights of another run.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "rotrnn/base/random.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/kernels/oracle/rotations_reference.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/frontend_statistics.h"
#include "rotrnn/training/trainer.h"
#include "tests/support/archive.h"
#include "tests/support/folder.h"
#include "tests/support/wav.h"

namespace rotrnn {
namespace {

using test::Folder;

// Low and high tones in noise, of 0.04 to 0.1 seconds.
void write_tones(const std::filesystem::path& folder, double scale) {
  Random random(4, RandomSite::trial);
  for (int i = 0; i < 60; ++i) {
    const bool high = i % 2 == 1;
    std::vector<int16_t> samples(320 + random.below(480));
    for (size_t t = 0; t < samples.size(); ++t) {
      const double angle =
          2 * std::numbers::pi * (high ? 1500 : 300) * static_cast<double>(t) / 8000;
      samples[t] = static_cast<int16_t>(scale * (8000 * std::sin(angle) + 2000 * random.normal()));
    }
    const auto file = folder / (high ? "high" : "low") / (std::to_string(i) + ".wav");
    std::filesystem::create_directories(file.parent_path());
    write_file_atomically(file, test::wav_bytes(samples, 8000));
  }
}

Config tone_config(const std::filesystem::path& folder) {
  Config config = parse_config(R"(
[task]
name = "audio_folder"
cache = "none"
[frontend]
kind = "rotations"
bands = 9
learn = true
[model]
width = 8
state = 8
heads = 2
depth = 2
[training]
steps = 24
batch = 8
evaluate_every = 7
checkpoint_every = 6
global_lr = 1e-2
recurrent_lr = 1e-3
threads = 1
)",
                               "tones");
  config.task.path = folder.string();
  return config;
}

std::vector<double> as_doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

TEST(Frontend, LearnsMeanAndDeviationOfTheTrainingTokens) {
  const Folder folder;
  write_tones(folder / "tones", 1);
  const Config config = tone_config(folder / "tones");
  const TaskData data = load_task(config.task, 1);
  EXPECT_EQ(data.facts.shape.rate, 8000);
  Network network(config.model, data.facts.shape, 0);
  const FrontendOptions& o = network.options().frontend;
  EXPECT_EQ(o.hop, 80);
  // By the twin in double, over all tokens at once.
  std::vector<int64_t> numbers(static_cast<size_t>(data.train.size()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const Batch batch = make_batch(data.train, data.facts.shape, numbers);
  std::vector<int64_t> tokens;
  frontend_offsets(o, batch.offsets.data(), std::ssize(numbers), tokens);
  kernels::reference::RotationValues<double> v;
  v.bands = 9, v.hop = 80;
  v.theta = as_doubles(network.weights().find("frontend.theta"));
  v.gamma_log = as_doubles(network.weights().find("frontend.gamma_log"));
  v.mean.assign(9, 0), v.deviation.assign(9, 1);
  v.x = as_doubles(batch.values);
  const auto rows = kernels::reference::rotations_forward(v, {batch.offsets.data(), numbers.size()},
                                                          tokens.data());
  std::vector<float> one;
  for (const int threads : {1, 3}) {
    network.engine.threads = threads;
    learn_frontend(network, data.train);
    const auto mean = network.weights().find("frontend.mean");
    const auto deviation = network.weights().find("frontend.deviation");
    for (size_t k = 0; k < 9; ++k) {
      double sum = 0, square = 0;
      const auto n = static_cast<double>(rows.size() / 9);
      for (size_t at = k; at < rows.size(); at += 9) sum += rows[at];
      for (size_t at = k; at < rows.size(); at += 9) square += std::pow(rows[at] - sum / n, 2);
      EXPECT_NEAR(mean[k], sum / n, 1e-5);
      EXPECT_NEAR(deviation[k], std::sqrt(square / n), 1e-5);
    }
    std::vector<float> both(mean.begin(), mean.end());
    both.insert(both.end(), deviation.begin(), deviation.end());
    if (one.empty()) one = both;
    EXPECT_EQ(both, one);  // to the bit
  }
}

TEST(Frontend, RunsAreTheSameForAnyThreadsAndAfterAResume) {
  const Folder folder;
  write_tones(folder / "tones", 1);
  Config config = tone_config(folder / "tones");
  const auto whole = train({config, folder / "whole", false, {}}, {});
  EXPECT_GE(whole.test.accuracy, 0.9);
  config.training.threads = 3;
  train({config, folder / "threads", false, {}}, {});
  config.training.threads = 1;
  int64_t seen = 0;
  TrainObserver observer;
  observer.step = [&](const StepReport& r) { seen = r.step; };
  observer.stop = [&] { return seen == 8; };
  train({config, folder / "parts", false, {}}, observer);
  train({config, folder / "parts", true, {}}, {});
  for (const char* file : {"last/weights.safetensors", "last/optimiser.safetensors"}) {
    EXPECT_EQ(read_file(folder / "whole" / file), read_file(folder / "parts" / file)) << file;
    EXPECT_EQ(read_file(folder / "whole" / file), read_file(folder / "threads" / file)) << file;
  }
  // What was chosen is written down.
  const Config saved = load_config(folder / "whole/config.toml", {});
  EXPECT_EQ(saved.model.frontend.hop, 80);
  EXPECT_NEAR(saved.model.frontend.high, 3850, 1e-9);
}

TEST(Frontend, ComesFromTheWeightsThatARunStartsFrom) {
  const Folder folder;
  write_tones(folder / "loud", 1);
  write_tones(folder / "quiet", 1);
  Config config = tone_config(folder / "loud");
  config.model.frontend.learn = false;
  config.training.steps = 2;
  train({config, folder / "first", false, {}}, {});
  Config next = config;
  next.task.path = (folder / "quiet").string();
  next.task.seed = 7;  // other examples in train
  train({next, folder / "drawn", false, {}}, {});
  TrainRequest request{next, folder / "next", false, folder / "first"};
  train(request, {});
  const auto mean_of = [&](const char* run) {
    const auto checkpoint = read_checkpoint(folder / run / "last", Parts::weights);
    Network network = load_network(checkpoint, {});
    const auto mean = network.weights().find("frontend.mean");
    return std::vector<float>(mean.begin(), mean.end());
  };
  EXPECT_EQ(mean_of("next"), mean_of("first"));
  EXPECT_NE(mean_of("drawn"), mean_of("first"));
}

TEST(Frontend, WhatCannotHaveOneIsRefused) {
  Config config;
  config.model.frontend.kind = FrontendKind::rotations;
  DataShape shape{InputKind::tokens, 5, TargetKind::classes, 3};
  EXPECT_NE(test::message_of<std::invalid_argument>([&] {
              Network(config.model, shape, 0);
            }).find("texts"),
            std::string::npos);
  shape.input = InputKind::channels;
  shape.per_token = true;
  EXPECT_NE(test::message_of<std::invalid_argument>([&] {
              Network(config.model, shape, 0);
            }).find("every step"),
            std::string::npos);
  config.task.target = TaskTarget::forecast;
  config.task.name = "series";
  config.model.pooling = Pooling::none;
  EXPECT_NE(test::message_of<std::invalid_argument>([&] { check(config); }).find("front end"),
            std::string::npos);
}

}  // namespace
}  // namespace rotrnn
