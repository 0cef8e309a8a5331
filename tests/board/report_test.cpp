#include "rotrnn/board/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "rotrnn/board/text.h"
#include "rotrnn/plot/chart.h"
#include "tests/support/folder.h"

namespace rotrnn::board {
namespace {

// By hand: at 10 both are there, at 15 one lies on a line between points, at 20 one has ended.
TEST(Spread, IsMeanAndDeviationOfThoseThatReachThere) {
  const Curve out = spread_of({{{0, 10, 20}, {1, 2, 4}, {}}, {{10, 15}, {4, 7}, {}}}, 100);
  EXPECT_EQ(out.step, (std::vector<double>{0, 10, 15, 20}));
  const double expected[] = {1, 3, 5, 4};
  const double deviation[] = {0, std::sqrt(2.0), std::sqrt(8.0), 0};  // n - 1
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(out.value[i], expected[i], 1e-12);
    EXPECT_NEAR(out.deviation[i], deviation[i], 1e-12);
  }
  EXPECT_EQ(spread_of({{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {}}}, 2).step,
            (std::vector<double>{0, 4}));
}

TEST(Report, HoldsEverythingAndNamesAreInert) {
  const test::Folder folder;
  const std::string name = "<script>alert(1)<∕script>";
  std::filesystem::create_directories(folder / name);
  std::ofstream(folder / name / "metrics.jsonl")
      << "{\"step\":1,\"split\":\"train\",\"loss\":5}\n{\"step\":2,\"split\":\"train\",\"loss\":4}"
         "\n"
      << "{\"step\":2,\"split\":\"validation\",\"confusion\":[[1,2],[3,4]],\"classes\":"
         "[\"</script><script>alert(2)</script>\",\"b\"]}\n"
      << "{\"step\":2,\"split\":\"lambda\",\"layers\":[{\"re\":[0.5],\"im\":[0.5]}]}\n";
  Api api({folder.path()});
  const Report report = make_report(api, "A </title><script> title", "today");
  EXPECT_EQ(report.runs, 1u);
  std::vector<std::string> names;
  for (const Picture& picture : report.pictures) names.push_back(picture.name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "eigenvalues-1", "confusion-1-validation"}));
  size_t scripts = 0;
  for (size_t at = 0; (at = report.html.find("<script", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 6u);  // the data, dygraphs, and four of ours
  EXPECT_EQ(report.html.find("alert(2)</script>"), std::string::npos);
}

TEST(Report, NothingToShowIsAnError) {
  const test::Folder folder;
  Api api({folder.path()});
  EXPECT_THROW(make_report(api, "x", "y"), std::runtime_error);
}

TEST(CleanText, IsValidAnywhere) {
  EXPECT_EQ(clean_text("plain é 語"), "plain é 語");
  EXPECT_EQ(clean_text(std::string("a\0b\n\x7f", 5)), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(clean_text("\xff\xc3"), "\uFFFD\uFFFD");
  EXPECT_LE(clean_text(std::string(1000, 'x'), 10).size(), 10u);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Chart, OnePointIsADotInTheLegendToo) {
  Chart chart{"t", "x", "y", {{"validation", {1, 2}, {3, 4}, {}}, {"test", {2}, {3.5}, {}}}};
  chart.lines[1].dashed = true;
  const std::string svg = to_svg({chart}, 1);
  EXPECT_EQ(count_of(svg, "<polyline"), 1u);
  EXPECT_EQ(count_of(svg, "<circle"), 2u);  // in the chart and in the legend
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 0u);
  chart.lines[1].x = {1, 2};
  chart.lines[1].y = {3.5, 3.6};
  EXPECT_EQ(count_of(to_svg({chart}, 1), "stroke-dasharray"), 2u);
}

TEST(Chart, AxisNeedNotBeginAtZero) {
  Chart chart{"t", "x", "y", {{"a & b", {0, 1, 2}, {101, 103, 102}, {}}}};
  chart.from_zero = false;
  chart.legend_below = true;
  chart.lines[0].dashed = true;
  const std::string svg = to_svg({chart}, 1);
  EXPECT_NE(svg.find(">101<"), std::string::npos);
  EXPECT_NE(svg.find("stroke-dasharray"), std::string::npos);
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  chart.from_zero = true;
  EXPECT_NE(to_svg({chart}, 1).find(">20<"), std::string::npos);
}

}  // namespace
}  // namespace rotrnn::board
