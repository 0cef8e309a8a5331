#include "rotrnn/training/evaluate/norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

void write_run(const fs::path& run, const std::vector<std::string>& lines) {
  fs::create_directories(run);
  std::ofstream out(run / "metrics.jsonl");
  for (const std::string& line : lines) out << line << "\n";
}

TEST(Norms, ReadsTheLinesOfARun) {
  const test::Folder folder;
  write_run(folder.path(), {R"({"step":0,"split":"norms","whole":[4,6],"head":[1,2]})",
                            R"({"step":5,"split":"train","loss":1.5})",
                            R"({"step":10,"split":"norms","whole":[5,7],"head":[1.5,2.5]})"});
  const NormTrace trace = read_norms(folder.path());
  EXPECT_EQ(trace.steps, (std::vector<int64_t>{0, 10}));
  EXPECT_EQ(trace.whole, (std::vector<std::vector<double>>{{4, 5}, {6, 7}}));
  EXPECT_EQ(trace.head, (std::vector<std::vector<double>>{{1, 1.5}, {2, 2.5}}));
}

TEST(Norms, SaysWhatIsWrongWithARun) {
  const test::Folder folder;
  EXPECT_THROW(read_norms(folder.path() / "none"), std::runtime_error);
  write_run(folder.path(), {R"({"step":5,"split":"train","loss":1.5})"});
  const auto message = test::message_of<std::runtime_error>([&] { read_norms(folder.path()); });
  EXPECT_NE(message.find("norms_every"), std::string::npos) << message;
  write_run(folder.path(), {"{broken"});
  EXPECT_THROW(read_norms(folder.path()), std::runtime_error);
}

TEST(Norms, PlansDeepRunsAndSeedsOfEveryLayer) {
  NormsPlan plan;
  plan.config = norms_config(false, {"training.seed=7"});
  plan.layers = {"rotrnn"};
  plan.depth = 3;
  plan.seeds = 2;
  plan.out = "x";
  const auto cells = cells_of(plan);
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_TRUE(cells[0].deep);
  EXPECT_EQ(cells[0].config.model.depth, 3);
  EXPECT_EQ(cells[2].config.model.depth, 1);
  EXPECT_EQ(cells[2].config.training.seed, 8);
  EXPECT_NE(cells[1].run, cells[2].run);
  EXPECT_EQ(norms_config(true, {}).training.steps, 80000);
  plan.layers = {"rotrnn", "lru", "rotrnn"};
  EXPECT_THROW(cells_of(plan), std::invalid_argument);
  plan.layers = {"rotrnn"};
  plan.config.training.norms_every = 0;
  EXPECT_THROW(cells_of(plan), std::invalid_argument);
}

// Two layers whose coefficients of variation are known without a calculator.
TEST(Norms, SumsUpByHand) {
  const test::Folder folder;
  NormsPlan plan;
  plan.config = norms_config(false, {});
  plan.layers = {"rotrnn"};
  plan.depth = 2;
  plan.seeds = 2;
  plan.out = folder.path();
  const auto cells = cells_of(plan);
  // Block 1 swings between 1 and 3 (mean 2, deviation 1), block 2 stays at 4.
  write_run(cells[0].run, {R"({"step":0,"split":"norms","whole":[1,4],"head":[1,1]})",
                           R"({"step":1,"split":"norms","whole":[3,4],"head":[1,3]})"});
  // Seeds 2 and 6 apart: mean 4, deviation 2 at both probes; each is constant in time.
  write_run(cells[1].run, {R"({"step":0,"split":"norms","whole":[2],"head":[1]})",
                           R"({"step":1,"split":"norms","whole":[2],"head":[1]})"});
  write_run(cells[2].run, {R"({"step":0,"split":"norms","whole":[6],"head":[3]})",
                           R"({"step":1,"split":"norms","whole":[6],"head":[3]})"});
  const NormsResult result = collect_norms(cells);
  ASSERT_EQ(result.summaries.size(), 1u);
  const NormsSummary& s = result.summaries[0];
  EXPECT_DOUBLE_EQ(s.deep_mean, 3);
  EXPECT_DOUBLE_EQ(s.deep_head_mean, 1.5);
  EXPECT_DOUBLE_EQ(s.over_training, 0.25);  // (1/2 + 0)/2
  EXPECT_DOUBLE_EQ(s.over_layers, (1.5 / 2.5 + 0.5 / 3.5) / 2);
  EXPECT_DOUBLE_EQ(s.single_mean, 4);
  EXPECT_DOUBLE_EQ(s.single_head_mean, 2);
  EXPECT_DOUBLE_EQ(s.single_over_training, 0);
  EXPECT_DOUBLE_EQ(s.over_seeds, 0.5);

  const auto json = nlohmann::json::parse(norms_json(result, "rotrnn norms"));
  EXPECT_EQ(json["runs"].size(), 3u);
  EXPECT_EQ(json["summary"][0]["variation_over_training"], 0.25);
  const auto charts = norms_charts(result);
  ASSERT_EQ(charts.size(), 4u);  // deep and one block, whole and per head
  EXPECT_EQ(charts[0].lines.size(), 2u);
  EXPECT_EQ(charts[1].lines[0].y, (std::vector<double>{4, 4}));
  EXPECT_EQ(charts[1].lines[0].spread, (std::vector<double>{2, 2}));
  EXPECT_NE(norms_html(result, "a < b").find("a &lt; b"), std::string::npos);
}

TEST(Chart, PutsPointsWhereTheAxesSay) {
  Chart chart{"t", "x", "y", {{"l", {0, 10}, {0, 4}, {}}}};
  const std::string svg = to_svg({chart}, 3);
  // Axes from 0 to 10 and from 0 to 4: the line goes from corner to corner of the plot.
  EXPECT_NE(svg.find("points='56.0,254.0 376.0,34.0 '"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<svg "), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(Chart, LeavesOutWhatIsNotFiniteAndNeedsNoData) {
  const double nan = std::nan("");
  const std::string svg = to_svg({{"a & b", "x", "y", {{"l", {0, 1, 2}, {1, nan, 1}, {}}}},
                                  {"empty", "x", "y", {}},
                                  {"point", "x", "y", {{"l", {3}, {0}, {nan}}}}},
                                 2);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
}

}  // namespace
}  // namespace rotrnn
