// Steps that are not finite, and damaged checkpoints, by whole runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/sha.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/training/checkpoint/weight_file.h"
#include "rotrnn/training/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/tiny_config.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::message_of;
using test::tiny_config;

using Lines = std::vector<nlohmann::json>;

Lines metrics(const fs::path& run, const std::string& split) {
  std::istringstream in(read_file(run / "metrics.jsonl"));
  Lines lines;
  for (std::string line; std::getline(in, line);) {
    auto json = nlohmann::json::parse(line);
    if (json.at("split") == split) lines.push_back(json);
  }
  return lines;
}

void flip(const fs::path& file) {
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(file, std::ios::binary) << bytes;
}

std::vector<float> floats(const SafeTensor& tensor) {
  EXPECT_EQ(tensor.dtype, Dtype::f32);
  std::vector<float> out(tensor.data.size() / sizeof(float));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

// Eight series, of which number 3 overflows: (3e38)² is no float, so a batch with it is not finite.
class NonFiniteSteps : public testing::Test {
 protected:
  NonFiniteSteps() {
    fs::create_directories(folder_ / "data");
    for (const char* name : {"train", "val", "test"}) {
      std::ofstream out(folder_ / "data" / (std::string(name) + ".csv"));
      out << "series,kind\n";
      for (int i = 0; i < 8; ++i) {
        const bool bad = name == std::string("train") && i == 3;
        out << (bad     ? "3e38 -3e38 3e38"
                : i % 2 ? "1 -2 0.5"
                        : "-1 0.3 2")
            << "," << (i % 2 ? "odd" : "even") << "\n";
      }
    }
    config_ = parse_config(R"(
[task]
name = "csv"
series_column = "series"
label_column = "kind"
normalisation = "none"
cache = "none"
[model]
width = 6
state = 8
heads = 2
depth = 2
[training]
steps = 6
batch = 4
log_every = 1
evaluate_every = 100
checkpoint_every = 100
threads = 1
)",
                           "overflow");
    config_.task.path = (folder_ / "data").string();
  }

  TrainOutcome run(const std::string& out, bool resume = false) {
    TrainObserver observer;
    observer.warning = [&](const std::string& text) { warnings_.push_back(text); };
    return train({config_, folder_ / out, resume, {}}, observer);
  }

  std::map<std::string, std::vector<float>> weights(const std::string& out) {
    const Checkpoint read = read_checkpoint(folder_ / out / "last", Parts::all);
    std::map<std::string, std::vector<float>> tensors;
    for (const SafeTensorFile* file : {&*read.weights, &*read.moments}) {
      for (const auto& name : file->names()) tensors[name] = floats(file->at(name));
    }
    return tensors;
  }

  Folder folder_;
  Config config_;
  std::vector<std::string> warnings_;
};

TEST_F(NonFiniteSteps, LeaveWeightsMomentsAndStatisticsAsTheyWere) {
  config_.training.batch = 8;  // number 3 is in every batch
  config_.training.steps = 3;
  for (const Kernels kernels : {Kernels::fused, Kernels::reference}) {
    config_.training.kernels = kernels;
    const std::string out = kernels == Kernels::fused ? "fused" : "reference";
    const TrainOutcome outcome = run(out);
    EXPECT_EQ(outcome.skipped, 3);
    // A network that was never trained: its own weights, moments of 0, mean 0 and variance 1.
    const TaskFacts facts = read_checkpoint(folder_ / out / "last", Parts::header).header.facts;
    const Network fresh(config_.model, facts.shape, 0);
    std::map<std::string, std::vector<float>> expected;
    for (const auto& [name, tensor] : tensors_of(fresh.weights())) expected[name] = floats(tensor);
    const auto found = weights(out);
    EXPECT_EQ(found.size(), expected.size() + 2 * fresh.layout().parameters.size());
    for (const auto& [name, values] : found) {
      const bool moment = name.starts_with("first.") || name.starts_with("second.");
      EXPECT_EQ(values, moment ? std::vector<float>(values.size()) : expected.at(name)) << name;
    }
  }
}

TEST_F(NonFiniteSteps, AreSkippedAndCounted) {
  config_.training.log_every = 3;
  const TrainOutcome outcome = run("a");
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.skipped, 3) << "one of the two batches of each of three epochs";
  const Lines skipped = metrics(folder_ / "a", "skipped");
  ASSERT_EQ(skipped.size(), 3);
  for (const auto& line : skipped) {
    const auto examples = line.at("examples").get<std::vector<int64_t>>();
    EXPECT_EQ(examples.size(), 4);
    EXPECT_EQ(std::count(examples.begin(), examples.end(), 3), 1) << line;
    EXPECT_FALSE(line.at("parameter").get<std::string>().empty());
  }
  ASSERT_EQ(warnings_.size(), 3);
  EXPECT_NE(warnings_[0].find("train.csv"), std::string::npos) << warnings_[0];
  const Lines train = metrics(folder_ / "a", "train");
  EXPECT_EQ(train.back().at("skipped"), 3);
  for (const auto& line : train) EXPECT_TRUE(line.at("loss").is_number()) << line;
  for (const auto& [name, values] : weights("a")) EXPECT_TRUE(all_finite(values)) << name;
}

// Resumed in the middle of a row of skipped steps too.
TEST_F(NonFiniteSteps, ResumeAsUnbroken) {
  config_.training.checkpoint_every = 1;
  run("whole");
  for (int64_t stop = 1; stop < 6; ++stop) {
    const std::string out = "stop" + std::to_string(stop);
    int64_t step = 0;
    TrainObserver observer;
    observer.stop = [&] { return ++step == stop; };
    EXPECT_FALSE(train({config_, folder_ / out, false, {}}, observer).finished);
    EXPECT_EQ(run(out, true).skipped, 3);
    for (const char* name : {"weights.safetensors", "optimiser.safetensors", "state.json"}) {
      EXPECT_EQ(read_file(folder_ / out / "last" / name), read_file(folder_ / "whole/last" / name));
    }
  }
}

TEST_F(NonFiniteSteps, StopTheRunWhenTheyGoOn) {
  config_.training.batch = 8;
  config_.training.steps = 50;
  config_.training.checkpoint_every = 1;
  config_.training.non_finite_limit = 5;
  const auto message = message_of<std::runtime_error>([&] { run("a"); });
  for (const char* part : {"the last 5 steps", "step 5:", "loss nan", "gradient of \"", "train.csv",
                           "training.global_lr", "--init-from"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
  EXPECT_EQ(metrics(folder_ / "a", "skipped").size(), 5);
  const Checkpoint last = read_checkpoint(folder_ / "a/last", Parts::all);
  EXPECT_EQ(last.header.state.step, 4);
  EXPECT_EQ(last.header.state.skipped_in_a_row, 4);
}

Config kept() {
  Config config = tiny_config();
  config.training.keep_checkpoint_every = 10;
  return config;
}

// A step that is finite can take weights where they are not, here by decay alone: the vector of a
// token that never comes, so that the loss does not show it.
TEST(NonFiniteWeights, AreNeverSaved) {
  const Folder folder;
  Config config = kept();
  config.training.steps = 1;
  train({config, folder / "start", false, {}}, {});
  const Checkpoint start = read_checkpoint(folder / "start/best", Parts::weights);
  Network large = load_network(start, {});
  const auto row = large.weights().find("encoder.weight").first(8);  // of token 0
  std::fill(row.begin(), row.end(), 1e37f);
  fs::create_directories(folder / "large");
  save_checkpoint(folder / "large/best", large.weights(), nullptr, start.header);
  config.training.steps = 10;
  config.training.checkpoint_every = 1;
  config.training.warmup = 0;
  config.training.global_lr = 0.02;
  config.training.weight_decay = 999;  // w ← -19 w: 1.9e38, then more than a float holds
  const auto message = message_of<std::runtime_error>([&] {
    train({config, folder / "a", false, folder / "large"}, {});
  });
  EXPECT_NE(message.find("step 2: \"encoder.weight\" is not finite"), std::string::npos) << message;
  const Checkpoint last = read_checkpoint(folder / "a/last", Parts::all);
  EXPECT_EQ(last.header.state.step, 1);
  for (const auto& name : last.weights->names()) {
    EXPECT_TRUE(all_finite(floats(last.weights->at(name)))) << name;
  }
}

class DamagedRun : public testing::Test {
 protected:
  DamagedRun() { train({kept(), folder_ / "whole", false, {}}, {}); }

  // A run that was stopped after step 18, with checkpoints of 18, 12 and 10.
  void stopped_run() {
    fs::remove_all(run_);
    TrainObserver observer;
    int64_t step = 0;
    observer.stop = [&] { return ++step == 18; };
    train({kept(), run_, false, {}}, observer);
  }

  std::vector<std::string> resume() {
    std::vector<std::string> warnings;
    TrainObserver observer;
    observer.warning = [&](const std::string& text) { warnings.push_back(text); };
    EXPECT_TRUE(train({kept(), run_, true, {}}, observer).finished);
    return warnings;
  }

  void expect_unbroken() {
    for (const char* name : {"last/weights.safetensors", "last/optimiser.safetensors",
                             "last/state.json", "best/weights.safetensors", "step-20/state.json"}) {
      EXPECT_EQ(read_file(run_ / name), read_file(folder_ / "whole" / name)) << name;
    }
  }

  Folder folder_;
  fs::path run_ = folder_ / "run";
};

TEST_F(DamagedRun, GoesOnFromThePreviousCheckpoint) {
  for (const char* name :
       {"weights.safetensors", "optimiser.safetensors", "state.json", "SHA256SUMS"}) {
    stopped_run();
    flip(run_ / "last" / name);
    const auto warnings = resume();
    ASSERT_EQ(warnings.size(), 2) << name;
    EXPECT_NE(warnings[0].find("last/"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[1].find("previous"), std::string::npos) << warnings[1];
    expect_unbroken();
  }
}

TEST_F(DamagedRun, GoesOnFromOneThatWasKept) {
  stopped_run();
  EXPECT_EQ(read_checkpoint(run_ / "step-10", Parts::all).header.state.step, 10);
  flip(run_ / "last/weights.safetensors");
  flip(run_ / "previous/state.json");
  EXPECT_NE(resume().back().find("step-10"), std::string::npos);
  expect_unbroken();
}

TEST_F(DamagedRun, SaysWhenTheBestIsLost) {
  stopped_run();
  flip(run_ / "best/weights.safetensors");
  EvaluationRequest request;
  request.run = run_;
  const auto refused = message_of<std::runtime_error>([&] { evaluate_run(request); });
  EXPECT_NE(refused.find("best/weights.safetensors: damaged"), std::string::npos) << refused;
  const auto warnings = resume();
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_NE(warnings[0].find("best/weights.safetensors: damaged"), std::string::npos);
  EXPECT_NO_THROW(evaluate_run(request));
}

// A checkpoint with checksums that fit, and contents that do not.
TEST_F(DamagedRun, WhatDoesNotFitIsAClearError) {
  EvaluationRequest request;
  request.run = folder_ / "whole";
  const fs::path best = request.run / "best", state = best / "state.json";
  const std::string text = read_file(state);
  const auto says = [&](const std::string& changed) {
    std::ofstream(state) << changed;
    std::ofstream sums(best / "SHA256SUMS");
    for (const char* name : {"state.json", "weights.safetensors"}) {
      sums << sha256_of_file(best / name) << "  " << name << "\n";
    }
    sums.close();
    return message_of<std::runtime_error>([&] { evaluate_run(request); });
  };
  EXPECT_NE(says(text.substr(0, 20)).find("state.json: not a checkpoint"), std::string::npos);
  EXPECT_NE(says("{\"format\": 99}").find("format 99"), std::string::npos);
  std::string changed = text;
  changed.replace(changed.find("width = 8"), 9, "width = 9");
  EXPECT_NE(says(changed).find("another model"), std::string::npos);
}

}  // namespace
}  // namespace rotrnn
