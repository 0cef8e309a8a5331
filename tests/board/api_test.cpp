#include "rotrnn/board/api.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/folder.h"

namespace rotrnn::board {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void append(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

std::string train(int step, double loss) {
  return fmt::format("{{\"step\":{},\"split\":\"train\",\"loss\":{}}}\n", step, loss);
}

std::string id_of(Api& api) {
  return Json::parse(api.runs()).at("runs").at(0).at("id");
}

Json series(Api& api, const std::string& id, const SeriesQuery& query = {}) {
  std::this_thread::sleep_for(std::chrono::milliseconds(110));  // an answer may be that old
  return Json::parse(api.series(id, query).value());
}

TEST(Api, TellsOnlyWhatIsNew) {
  const test::Folder folder;
  append(folder / "run/metrics.jsonl", train(1, 5) + train(2, 4));
  Api api({folder.path()});
  const std::string id = id_of(api);
  Json answer = series(api, id);
  EXPECT_EQ(answer["append"], false);
  EXPECT_EQ(answer["series"]["train.loss"]["x"], Json({1, 2}));
  EXPECT_EQ(answer["series"]["train.loss"]["y"], Json({5, 4}));
  SeriesQuery query;
  query.since = answer["at"];
  answer = series(api, id, query);
  EXPECT_EQ(answer["append"], true);
  EXPECT_TRUE(answer["series"].empty());
  // The last step may have got more lines.
  append(folder / "run/metrics.jsonl",
         "{\"step\":2,\"split\":\"validation\",\"loss\":9}\n" + train(3, 3));
  answer = series(api, id, query);
  EXPECT_EQ(answer["append"], true);
  EXPECT_EQ(answer["series"]["train.loss"]["x"], Json({2, 3}));
  EXPECT_EQ(answer["series"]["validation.loss"]["x"], Json({2}));
  EXPECT_EQ(answer["step"], 3);
  query.since = answer["at"];
  append(folder / "run/metrics.jsonl", train(2, 1));  // it went back: all is sent again
  answer = series(api, id, query);
  EXPECT_EQ(answer["append"], false);
  EXPECT_EQ(answer["series"]["train.loss"]["y"], Json({5, 1}));
  for (const char* nonsense :
       {"x", "1", "1.2", "1.2.3.4", "99999999999999999999.1.1", "..", "-1.1.1"}) {
    query.since = nonsense;
    EXPECT_EQ(series(api, id, query)["append"], false) << nonsense;
  }
}

TEST(Api, ARunOfManyLinesIsDecimatedAndZoomed) {
  const test::Folder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += train(i, i == 7'777 ? 100 : i % 10);
  append(folder / "run/metrics.jsonl", text);
  Api api({folder.path()});
  const std::string id = id_of(api);
  SeriesQuery query;
  query.points = 100;
  Json loss = series(api, id, query)["series"]["train.loss"];
  EXPECT_LE(loss["x"].size(), 102u);
  EXPECT_EQ(loss["mean_x"].size(), 50u);
  EXPECT_NE(std::find(loss["y"].begin(), loss["y"].end(), 100), loss["y"].end());
  query.from = 7'770;
  query.to = 7'780;
  loss = series(api, id, query)["series"]["train.loss"];
  EXPECT_EQ(loss["x"].size(), 13u);  // and one on either side
  query.points = 0;
  EXPECT_LE(series(api, id, query)["series"]["train.loss"]["x"].size(), 4u);
}

TEST(Api, RunsComeAndGo) {
  const test::Folder folder;
  append(folder / "a/metrics.jsonl", train(1, 1));
  append(folder / "b/metrics.jsonl", train(1, 1));
  Api api({folder.path()});
  const std::string id = id_of(api);
  EXPECT_TRUE(api.series(id, {}));
  fs::remove_all(folder / "a");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(Json::parse(api.runs())["runs"].size(), 1u);
  EXPECT_FALSE(api.series(id, {}));
  EXPECT_FALSE(api.detail(id));
  for (const char* wrong : {"", "a", "../a", "/etc/passwd", "a/metrics.jsonl"}) {
    EXPECT_FALSE(api.series(wrong, {}));
    EXPECT_FALSE(api.comparison(wrong));
  }
}

TEST(Api, DetailsHaveTheFirstAndTheLastFrame) {
  const test::Folder folder;
  std::string text;
  for (int i = 0; i <= 200; ++i) {
    text += fmt::format(
        "{{\"step\":{},\"split\":\"lambda\",\"layers\":[{{\"re\":[0.5],\"im\":[{}]}}]}}\n", i,
        i * 0.001);
  }
  text += R"({"step":200,"split":"test","confusion":[[3,1],[0,2]],"classes":["</script>","b"]})";
  append(folder / "run/metrics.jsonl", text + "\n");
  Api api({folder.path()});
  const Json detail = Json::parse(api.detail(id_of(api), 7).value());
  ASSERT_EQ(detail["lambda"].size(), 7u);
  EXPECT_EQ(detail["lambda"][0]["step"], 0);
  EXPECT_EQ(detail["lambda"][6]["step"], 200);
  EXPECT_EQ(detail["lambda"][6]["layers"], Json::parse("[[0.5,0.2]]"));
  EXPECT_EQ(detail["confusion"]["test"]["counts"], Json::parse("[[3,1],[0,2]]"));
}

}  // namespace
}  // namespace rotrnn::board
