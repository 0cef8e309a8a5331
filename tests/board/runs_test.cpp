#include "rotrnn/board/runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/folder.h"

namespace rotrnn::board {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void make_run(const fs::path& folder, int seed, const std::string& layer, int steps = 100) {
  write(folder / "metrics.jsonl", "");
  write(folder / "config.toml",
        fmt::format("[model]\nlayer = \"{}\"\n[training]\nseed = {}\nsteps = {}\n", layer, seed,
                    steps));
}

std::vector<std::string> names_of(const Found& found) {
  std::vector<std::string> out;
  for (const RunInfo& run : found.runs) out.push_back(run.name);
  return out;
}

TEST(RunFinder, FindsRunsAtAnyDepthAndGroupsSeeds) {
  const test::Folder folder;
  make_run(folder / "a-seed-1", 1, "rotrnn");
  make_run(folder / "a-seed-2", 2, "rotrnn");
  make_run(folder / "other", 1, "lru");
  make_run(folder / "cmp/s5/seed-1", 1, "s5", 40);
  make_run(folder / "cmp/s5/seed-2", 2, "s5", 44);  // equal minutes gave other steps
  for (const char* run : {"cmp/s5/seed-1", "cmp/s5/seed-2"})
    write(folder / run / "cell.json", "{}");
  write(folder / "broken/metrics.jsonl", "");
  write(folder / "broken/config.toml", "no = [toml");
  write(folder / "empty/notes.txt", "");
  RunFinder finder({folder.path()});
  const Found found = finder.find();
  EXPECT_EQ(names_of(found), (std::vector<std::string>{"a-seed-1", "a-seed-2", "broken",
                                                       "cmp/s5/seed-1", "cmp/s5/seed-2", "other"}));
  std::map<std::string, RunInfo> by_name;
  for (const RunInfo& run : found.runs) by_name[run.name] = run;
  EXPECT_EQ(by_name["a-seed-1"].group, by_name["a-seed-2"].group);
  EXPECT_EQ(by_name["a-seed-1"].group_name, "a");
  EXPECT_EQ(by_name["cmp/s5/seed-1"].group, by_name["cmp/s5/seed-2"].group);
  EXPECT_EQ(by_name["cmp/s5/seed-1"].group_name, "cmp/s5");
  EXPECT_NE(by_name["a-seed-1"].group, by_name["other"].group);
  EXPECT_EQ(by_name["other"].layer, "lru");
  EXPECT_EQ(by_name["a-seed-2"].seed, 2);
  EXPECT_EQ(by_name["broken"].group, "");
  EXPECT_TRUE(found.all);
}

TEST(RunFinder, LinksAreNotFollowedAndNamesAreText) {
  const test::Folder folder, outside;
  make_run(outside / "secret", 1, "rotrnn");
  fs::create_directories(folder / "runs");
  fs::create_directory_symlink(outside / "secret", folder / "runs/link");
  fs::create_directory_symlink("..", folder / "runs/up");
  make_run(folder / "runs/<img src=x onerror=alert(1)>", 1, "rotrnn");
  make_run(folder / "runs/bad\xff\x01", 1, "rotrnn");
  RunFinder finder({folder / "runs"});
  EXPECT_EQ(names_of(finder.find()),
            (std::vector<std::string>{"<img src=x onerror=alert(1)>", "bad\uFFFD\uFFFD"}));
  // A folder that is swapped for a link after it was found.
  const Found found = finder.find();
  const RunInfo& run = found.runs[0];
  fs::remove_all(folder / "runs" / run.path);
  fs::create_directory_symlink(outside / "secret", folder / "runs" / run.path);
  EXPECT_FALSE(finder.root(0).open(run.path / "config.toml"));
  EXPECT_FALSE(finder.root(0).open("../runs/x"));
  EXPECT_FALSE(finder.root(0).read(run.path / ".." / "x", 10));
}

TEST(RunFinder, ARunItselfSeveralFoldersAndNone) {
  const test::Folder folder;
  make_run(folder / "one/x", 1, "rotrnn");
  make_run(folder / "two/x", 1, "rotrnn");
  EXPECT_EQ(names_of(RunFinder({folder / "one/x"}).find()), std::vector<std::string>{"x"});
  RunFinder both({folder / "one", folder / "two"});
  EXPECT_EQ(names_of(both.find()), (std::vector<std::string>{"one/x", "two/x"}));
  EXPECT_NE(both.find().runs[0].id, both.find().runs[1].id);
  EXPECT_THROW(RunFinder({folder / "nowhere"}), std::runtime_error);
  fs::remove_all(folder / "one");
  EXPECT_EQ(names_of(both.find()), std::vector<std::string>{"two/x"});
}

TEST(RunFinder, FoldersOfOneNameAreToldApartByThoseAbove) {
  const test::Folder folder;
  for (const char* run : {"runs/text", "lru/text", "s5/text", "old/s5/text", "mnist"}) {
    make_run(folder / run, 1, "rotrnn");
  }
  RunFinder finder({folder / "runs/text", folder / "lru/text", folder / "old/s5/text",
                    folder / "mnist", folder / "mnist"});
  EXPECT_EQ(names_of(finder.find()),
            (std::vector<std::string>{"runs/text", "lru/text", "s5/text", "mnist", "mnist (2)"}));
  RunFinder deeper({folder / "s5/text", folder / "old/s5/text"});
  EXPECT_EQ(
      names_of(deeper.find()),
      (std::vector<std::string>{folder.path().filename().string() + "/s5/text", "old/s5/text"}));
  EXPECT_NO_THROW(RunFinder({"/"}));
}

TEST(Comparison, IsReducedToWhatIsShown) {
  const test::Folder folder;
  write(folder / "c/compare.json", R"({"task":"listops","command":"rotrnn compare","seeds":2,
    "finished":true,"budget":{"steps":9},"secret":{"a":1},"variants":[
    {"name":"rotrnn","state":8,"finished":2,"cells":[{},{}],
     "test_accuracy":{"mean":0.5,"deviation":0.25},"settings":["x"]}, 7]})");
  write(folder / "d/compare.json", "[1,2");
  RunFinder finder({folder.path()});
  const Found found = finder.find();
  ASSERT_EQ(found.comparisons.size(), 2u);
  const auto table = read_comparison(finder.root(0), found.comparisons[0]);
  ASSERT_TRUE(table);
  EXPECT_FALSE(table->contains("secret"));
  ASSERT_EQ((*table)["variants"].size(), 1u);
  EXPECT_EQ((*table)["variants"][0]["cells"], 2);
  EXPECT_EQ((*table)["variants"][0]["test_accuracy"]["deviation"], 0.25);
  EXPECT_FALSE((*table)["variants"][0].contains("settings"));
  EXPECT_FALSE(read_comparison(finder.root(0), found.comparisons[1]));
}

}  // namespace
}  // namespace rotrnn::board
