#include "rotrnn/training/compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/training/bench/inventory.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::Folder;
using test::message_of;

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

Config small() {
  return parse_config(R"(
[model]
width = 24
state = 40
heads = 5
depth = 3
[model.s5]
blocks = 3
[training]
steps = 50
)",
                      "small");
}

std::vector<Variant> layers() {
  return {
      {"rotrnn", {"model.layer=rotrnn"}}, {"lru", {"model.layer=lru"}}, {"s5", {"model.layer=s5"}}};
}

CompareRequest request_in(const Folder& folder) {
  CompareRequest request;
  request.base = small();
  request.variants = layers();
  request.seeds = 2;
  request.out = folder / "c";
  return request;
}

// Parameters by hand: D = 24, 18 tokens, 10 classes, depth 3, half_glu1 and batch norm.
int64_t parameters(const std::string& layer, int64_t N) {
  const int64_t D = 24, H = 5;
  const int64_t outside = 18 * D + 10 * D + 10, block = 2 * D + D * D + D;  // norm and gate
  int64_t inside = 0;
  if (layer == "rotrnn") {
    const int64_t dh = N / H;
    inside = H * (dh / 2) + H + H * dh * dh + N * D + D * N + D;
  } else if (layer == "lru") {  // nu, theta, gamma of N/2 states, complex B and C, D
    inside = 3 * N / 2 + 2 * (N / 2) * D + 2 * D * (N / 2) + D;
  } else {  // S5: Λ re and im, Δ, complex B and C, D
    inside = 3 * N / 2 + 2 * (N / 2) * D + 2 * D * (N / 2) + D;
  }
  return outside + 3 * (block + inside);
}

TEST(Compare, StatesAreMatchedByTheParameterCount) {
  const Folder folder;
  const Comparison c = open_comparison(request_in(folder));
  ASSERT_EQ(c.variants.size(), 3u);
  EXPECT_EQ(c.variants[0].config.model.state, 40);
  const int64_t target = parameters("rotrnn", 40);
  EXPECT_EQ(c.variants[0].parameters, target);
  for (const size_t i : {1, 2}) {
    const std::string layer = c.variants[i].variant.name;
    const int64_t step = layer == "lru" ? 2 : 6;  // even; a multiple of two blocks' worth
    int64_t best = step;
    for (int64_t N = step; N < 400; N += step) {
      if (std::abs(parameters(layer, N) - target) < std::abs(parameters(layer, best) - target)) {
        best = N;
      }
    }
    EXPECT_EQ(c.variants[i].config.model.state, best) << layer;
    EXPECT_EQ(c.variants[i].parameters, parameters(layer, best)) << layer;
    EXPECT_NE(best, 40) << "the test should show a difference";
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "c")) << "looking writes nothing";
}

TEST(Compare, RotRNNIsMatchedToAnotherYardstick) {
  const Folder folder;
  CompareRequest request = request_in(folder);
  std::swap(request.variants[0], request.variants[1]);
  const Comparison c = open_comparison(request);
  EXPECT_EQ(c.variants[0].config.model.state, 40);
  const int64_t target = parameters("lru", 40);
  int64_t best = 10;
  for (int64_t N = 10; N < 400; N += 5) {
    if (std::abs(parameters("rotrnn", N) - target) <
        std::abs(parameters("rotrnn", best) - target)) {
      best = N;
    }
  }
  EXPECT_EQ(c.variants[1].config.model.state, best);
}

TEST(Compare, WithoutMatchingTheStateIsKept) {
  const Folder folder;
  CompareRequest request = request_in(folder);
  request.match = false;
  expect_contains(message_of<std::invalid_argument>([&] { open_comparison(request); }),
                  "multiple of 2 · blocks");
  request.base.model.s5.blocks = 4;
  for (const auto& v : open_comparison(request).variants) EXPECT_EQ(v.config.model.state, 40);
}

TEST(Compare, TheNearestStateIsFoundAtTheEndsToo) {
  ModelOptions m;
  m.layer = "lru";
  m.state = 40;
  auto count = [](const ModelOptions& o) { return 100 + 10 * o.state; };
  EXPECT_EQ(match_state(m, 0, count), 2) << "nothing is smaller";
  EXPECT_EQ(match_state(m, 100 + 10 * 30, count), 30);
  EXPECT_EQ(match_state(m, 100 + 10 * 31, count), 30) << "the smaller of two as near";
  EXPECT_EQ(match_state(m, 100 + 10 * 31 + 1, count), 32);
  EXPECT_EQ(match_state(m, int64_t{1} << 60, count), 16 * 64) << "the largest that is tried";
  m.layer = "s4";
  const auto in_pairs = [](const ModelOptions& o) { return 100 + 10 * (o.state / 2); };
  EXPECT_EQ(match_state(m, 100 + 10 * 16 + 4, in_pairs), 32) << "33 has as many parameters";
}

TEST(Compare, CountingOneBlockIsCountingAll) {
  Config config = small();
  for (const std::string& layer : layer_names()) {
    config.model.layer = layer;
    config.model.state = 30;
    for (const bool bidirectional : {false, true}) {
      config.model.bidirectional = bidirectional;
      const DataShape shape = describe_task(config.task).shape;
      int64_t all = 0;
      for (const auto& p : inventory(config.model, shape)) all += p.count;
      EXPECT_EQ(parameter_count(config.model, shape), all) << layer;
    }
  }
}

TEST(Compare, SpreadIsTheSampleDeviation) {
  const Spread s = spread_of({0.2, 0.4, 0.4, 0.4, 0.5, 0.5, 0.7, 0.9});
  EXPECT_EQ(s.count, 8);
  EXPECT_NEAR(s.mean, 0.5, 1e-12);
  EXPECT_NEAR(s.deviation, std::sqrt(0.32 / 7), 1e-12);
  EXPECT_EQ(spread_of({0.25}).mean, 0.25);
  EXPECT_EQ(spread_of({0.25}).deviation, 0);
  EXPECT_EQ(spread_of({}).count, 0);
}

TEST(Compare, ARowIsOverFinishedCells) {
  ComparedVariant v;
  auto add = [&](CellState state, double accuracy, double seconds, double rate, double memory) {
    Cell cell;
    cell.state = state;
    cell.test_accuracy = accuracy;
    cell.majority = 0.125;
    cell.steps = 30;
    cell.seconds = seconds;
    cell.tokens_per_second = rate;
    cell.peak_memory_mb = memory;
    v.cells.push_back(cell);
  };
  EXPECT_EQ(row_of(v).accuracy.count, 0);
  add(CellState::finished, 0.5, 60, 100, 30);
  add(CellState::failed, 0.9, 600, 1, 900);
  add(CellState::finished, 0.25, 120, 300, 20);
  add(CellState::unfinished, 0.8, 600, 1, 900);
  add(CellState::finished, 0.75, 90, 200, 10);
  const CompareRow row = row_of(v);
  EXPECT_EQ(row.accuracy.count, 3);
  EXPECT_DOUBLE_EQ(row.accuracy.mean, 0.5);
  EXPECT_DOUBLE_EQ(row.accuracy.deviation, 0.25);
  EXPECT_DOUBLE_EQ(row.majority, 0.125);
  EXPECT_DOUBLE_EQ(row.steps, 30);
  EXPECT_DOUBLE_EQ(row.minutes, 1.5);
  EXPECT_DOUBLE_EQ(row.tokens_per_second, 200);
  EXPECT_DOUBLE_EQ(row.peak_memory_mb, 20);
}

TEST(Compare, StepsFillTheBudgetAndNoMore) {
  RunTiming t;
  t.setup = 5;
  t.step = 0.1;
  t.validation = 4;
  t.test = 6;
  for (const double seconds : {60.0, 600.0, 3600.0}) {
    for (const int64_t every : {10, 500, 100'000}) {
      const int64_t n = steps_that_fit(t, seconds, every);
      // Evaluations at every multiple, and one at the end if that is none.
      auto takes = [&](int64_t steps) {
        const int64_t evaluations = steps / every + (steps % every ? 1 : 0);
        return t.setup + t.test + static_cast<double>(steps) * t.step +
               static_cast<double>(evaluations) * t.validation;
      };
      EXPECT_LE(takes(n), seconds) << seconds << " " << every;
      EXPECT_GE(takes(n + 1), 0.97 * seconds - t.validation) << seconds << " " << every;
    }
  }
  EXPECT_EQ(steps_that_fit(t, 1, 10), 1) << "a budget too small for anything";
}

// A cell as `compare` leaves it when it is killed.
void begin_cell(const ComparedVariant& v, size_t i) {
  Config config = v.config;
  config.training.seed = v.cells[i].seed;
  std::filesystem::create_directories(v.cells[i].folder);
  write_file_atomically(v.cells[i].folder / "config.toml", to_toml(config));
  write_file_atomically(v.cells[i].folder / "cell.json",
                        R"({"seed": 1, "state": "unfinished", "budget_minutes": 0.0,
                            "steps": 50, "seconds": 3.5, "running": true})");
}

TEST(Compare, AFolderOfAnotherComparisonIsRefused) {
  const Folder folder;
  const CompareRequest request = request_in(folder);
  begin_cell(open_comparison(request).variants[1], 1);
  const Comparison again = open_comparison(request);
  EXPECT_EQ(again.variants[1].cells[1].state, CellState::unfinished);
  EXPECT_EQ(again.variants[1].cells[1].seconds, 3.5);
  EXPECT_EQ(again.variants[1].cells[0].state, CellState::waiting);
  EXPECT_EQ(again.variants[0].cells[1].state, CellState::waiting);

  auto refused = [&](auto change) {
    CompareRequest other = request;
    change(other);
    const auto text = message_of<std::invalid_argument>([&] { open_comparison(other); });
    expect_contains(text, "lru/seed-1");
    expect_contains(text, "--out");
    return text;
  };
  expect_contains(refused([](auto& r) { r.base.training.global_lr = 0.25; }),
                  "training.global_lr = 0.001, not 0.25");
  expect_contains(refused([](auto& r) { r.base.task.listops.max_length = 600; }),
                  "task.max_length = 2000");
  expect_contains(refused([](auto& r) { r.base.training.steps = 51; }),
                  "training.steps = 50, not 51");
  expect_contains(refused([](auto& r) { r.base.model.width = 25; }), "model.width = 24, not 25");
  expect_contains(refused([](auto& r) { r.minutes = 2; }), "not 2 minutes");
  expect_contains(refused([](auto& r) { r.base.model.rotrnn.heads = 4; }),
                  "model.heads = 5, not 4");
  CompareRequest more = request;
  more.seeds = 4;
  more.variants.pop_back();
  EXPECT_EQ(open_comparison(more).variants[1].cells[1].state, CellState::unfinished)
      << "other seeds and variants may be added and left out";

  const auto cell = again.variants[1].cells[1].folder;
  write_file_atomically(cell / "cell.json", "{\"state\":");
  expect_contains(message_of<std::runtime_error>([&] { open_comparison(request); }), "cell.json");
  std::filesystem::remove(cell / "cell.json");
  expect_contains(message_of<std::invalid_argument>([&] { open_comparison(request); }),
                  "no part of a comparison");
}

TEST(Compare, PresetsFitThePapersConfig) {
  const Config base = load_config(ROTRNN_SOURCE "/configs/lra/listops.toml", {});
  const Folder folder;
  for (const Preset& preset : presets()) {
    CompareRequest request;
    request.base = base;
    request.base.model.depth = 1;
    request.variants = preset.variants;
    request.skip_unfit = preset.skip_unfit;
    request.out = folder / preset.name;
    const Comparison c = open_comparison(request);
    EXPECT_EQ(c.variants.size(), preset.variants.size()) << preset.name;
    for (size_t i = 0; i < c.variants.size(); ++i) {
      EXPECT_EQ(c.variants[i].config.model.state, 256) << "only other layers are matched";
      for (size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(differences(c.variants[i].config, c.variants[j].config).empty())
            << preset.name << ": " << c.variants[i].variant.name;
      }
    }
  }
  EXPECT_EQ(find_preset("heads").variants.size(), 4u);
  expect_contains(message_of<std::invalid_argument>([] { find_preset("haeds"); }),
                  "did you mean \"heads\"?");
}

TEST(Compare, HeadsThatDoNotDivideAreLeftOut) {
  const Folder folder;
  CompareRequest request = request_in(folder);  // a state of 40: 1, 2 and 8 divide it
  request.variants = find_preset("heads").variants;
  EXPECT_THROW(open_comparison(request), std::invalid_argument);
  request.skip_unfit = true;
  std::vector<std::string> names;
  for (const auto& v : open_comparison(request).variants) names.push_back(v.variant.name);
  EXPECT_EQ(names, (std::vector<std::string>{"heads-1", "heads-2", "heads-8"}));
}

TEST(Compare, NothingAndTwiceTheSameAreRefused) {
  const Folder folder;
  CompareRequest request = request_in(folder);
  request.variants = {};
  EXPECT_THROW(open_comparison(request), std::invalid_argument);
  request.variants = {layers()[0], layers()[0]};
  expect_contains(message_of<std::invalid_argument>([&] { open_comparison(request); }), "twice");
}

}  // namespace
}  // namespace rotrnn
