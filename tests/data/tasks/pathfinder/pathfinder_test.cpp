#include "rotrnn/data/tasks/pathfinder/pathfinder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "rotrnn/data/tasks/pathfinder/pathfinder_files.h"
#include "rotrnn/data/tasks/pathfinder/pathfinder_metadata.h"
#include "rotrnn/io/atomic_file.h"
#include "tests/support/archive.h"
#include "tests/support/folder.h"
#include "tests/support/image_bytes.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, content);
}

// A picture whose first pixel identifies it.
std::string picture(int number, int side = 32) {
  std::vector<uint8_t> pixels(side * side);
  pixels[0] = static_cast<uint8_t>(number);
  pixels[1] = 255;
  return test::grey_png(side, side, pixels);
}

// As the public release has it: two folders of ten pictures; the label of number n is n % 3 == 0.
void make_set(const fs::path& folder) {
  for (int k = 0; k < 2; ++k) {
    std::string text;
    for (int i = 0; i < 10; ++i) {
      write(folder / fmt::format("imgs/{}/sample_{}.png", k, i), picture(10 * k + i));
      text += fmt::format("imgs/{} sample_{}.png {} {} 1.0 14 4 2 0.5 1 1\n", k, i, i,
                          int{(10 * k + i) % 3 == 0});
    }
    write(folder / fmt::format("metadata/{}.npy", k), text);
  }
}

TaskOptions options_for(const fs::path& path) {
  TaskOptions o;
  o.name = "pathfinder";
  o.path = path;
  o.cache = "none";
  return o;
}

Records read(const fs::path& path, int threads = 1) {
  return read_task(options_for(path), threads);
}

std::string error_of(const fs::path& path) {
  return test::message_of<std::runtime_error>([&] { read(path); });
}

void expect_set(const Records& r) {
  ASSERT_EQ(r.size(), 20);
  EXPECT_EQ(r.classes, (std::vector<std::string>{"0", "1"}));
  std::set<int> seen;
  for (int64_t i = 0; i < r.size(); ++i) {
    const auto pixels = r.sequences.at(i);
    ASSERT_EQ(pixels.size(), 1024u);
    EXPECT_EQ(static_cast<int>(pixels[1]), 255);
    const int number = static_cast<int>(pixels[0]);
    seen.insert(number);
    EXPECT_EQ(r.examples[i].name, fmt::format("imgs/{}/sample_{}.png", number / 10, number % 10));
    EXPECT_EQ(r.labels[i], number % 3 == 0);
  }
  EXPECT_EQ(seen.size(), 20u);
}

TEST(Pathfinder, ReadsThePublicLayoutFromAnyOfItsFolders) {
  const test::Folder folder;
  make_set(folder / "pathfinder32/curv_contour_length_14");
  for (const char* below : {"", "pathfinder32", "pathfinder32/curv_contour_length_14"}) {
    for (const int threads : {1, 3}) expect_set(read(folder / below, threads));
  }
  // Other sets beside it, as in the whole release, do not matter.
  make_set(folder / "pathfinder32/curv_baseline");
  make_set(folder / "pathfinder64/curv_contour_length_14");
  write(folder / "pathfinder64/curv_contour_length_14/imgs/0/sample_0.png", picture(0, 64));
  expect_set(read(folder.path()));
  expect_set(read(folder / "pathfinder32"));
  expect_set(read(folder / "pathfinder32/curv_baseline"));
  fs::remove_all(folder / "pathfinder32/curv_contour_length_14");
  make_set(folder / "pathfinder32/curv_contour_length_9");
  expect_contains(error_of(folder / "pathfinder32"), "there are several sets in it");
}

TEST(Pathfinder, ReadsAnArchiveAsItsFolder) {
  const test::Folder folder;
  make_set(folder / "in/pathfinder32/curv_contour_length_14");
  test::Files items;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "in")) {
    if (!entry.is_regular_file()) continue;
    items.emplace_back(fmt::format("lra/{}", fs::relative(entry.path(), folder / "in").string()),
                       read_file(entry.path()));
  }
  test::write_archive(folder / "lra.tar.gz", items);
  const Records packed = read(folder / "lra.tar.gz"), plain = read(folder / "in");
  expect_set(packed);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(packed.examples[i].name, plain.examples[i].name);
    EXPECT_EQ(packed.examples[i].split, plain.examples[i].split);
  }
}

TEST(Pathfinder, IsSplitEightyTenTen) {
  const test::Folder folder;
  make_set(folder.path());
  const auto splits = [&](int64_t seed) {
    TaskOptions o = options_for(folder.path());
    o.seed = seed;
    std::map<Split, int> counts;
    std::string text;
    for (const Record& r : read_task(o, 1).examples) {
      ++counts[r.split];
      text += static_cast<char>('0' + static_cast<int>(r.split));
    }
    EXPECT_EQ(counts,
              (std::map<Split, int>{{Split::train, 16}, {Split::validation, 2}, {Split::test, 2}}));
    return text;
  };
  EXPECT_EQ(splits(0), splits(0));
  EXPECT_NE(splits(0), splits(1));
}

TEST(Pathfinder, PixelsAreScaledAsPublished) {
  const test::Folder folder;
  make_set(folder.path());
  const TaskData data = load_task(options_for(folder.path()), 1);
  EXPECT_EQ(data.facts.shape.inputs, 1);
  EXPECT_EQ(data.facts.shape.outputs, 2);
  EXPECT_EQ(data.train.size() + data.validation.size() + data.test.size(), 20);
  std::vector<float> values(1024);
  ASSERT_EQ(data.train.length(0), 1024);
  data.train.write_values(0, values.data());
  EXPECT_EQ(values[1], 1.0f);   // 255: (1 - ½) / ½
  EXPECT_EQ(values[2], -1.0f);  // 0
}

TEST(Pathfinder, EmptyPicturesAreSkippedAndCounted) {
  const test::Folder folder;
  make_set(folder.path());
  write(folder / "imgs/1/sample_3.png", "");
  write(folder / "imgs/0/sample_9.png", "");
  const Records r = read(folder.path());
  EXPECT_EQ(r.size(), 18);
  EXPECT_EQ(r.skipped, 2);
  ASSERT_EQ(r.warnings.size(), 2u);
  expect_contains(r.warnings[0] + r.warnings[1],
                  (folder / "imgs/1/sample_3.png").string() + ": the file is empty");
}

TEST(Pathfinder, BadSetsAreNamed) {
  const test::Folder folder;
  make_set(folder / "good");
  const auto bad = [&](const std::string& file, const std::string& content) {
    fs::remove_all(folder / "bad");
    fs::copy(folder / "good", folder / "bad", fs::copy_options::recursive);
    fs::remove(folder / "bad" / file);
    if (!content.empty()) write(folder / "bad" / file, content);
    const std::string message = error_of(folder / "bad");
    expect_contains(message, (folder / "bad").string());
    return message;
  };
  expect_contains(bad("imgs/1/sample_4.png", ""), "sample_4.png: there is no such picture, and " +
                                                      (folder / "bad/metadata/1.npy").string() +
                                                      ":5 names it");
  expect_contains(bad("imgs/1/sample_4.png", picture(0).substr(0, 60)), "imgs/1/sample_4.png: ");
  expect_contains(bad("imgs/1/sample_4.png", "GIF89a"), "sample_4.png: the file starts with");
  expect_contains(bad("imgs/1/sample_4.png", picture(0, 31)),
                  "sample_4.png: 31 × 31 pixels; this task reads 32 × 32");
  expect_contains(bad("metadata/0.npy", "imgs/0 sample_0.png 0 0 1.0\n\nimgs/0 sample_1.png 1 2\n"),
                  "metadata/0.npy:3: the label is \"2\"; labels are 0 and 1");
  expect_contains(bad("metadata/0.npy", "imgs/0 sample_0.png 0\n"), "0.npy:1: 3 columns");
  expect_contains(bad("metadata/0.npy", "imgs/0 ../../sample_0.png 0 1\n"),
                  "0.npy:1: the picture is \"imgs/0/../../sample_0.png\"");
  expect_contains(bad("metadata/0.npy", "/etc passwd 0 1\n"), "must be below the folder");
  expect_contains(bad("metadata/0.npy", "imgs/1 sample_0.png 0 1\n"), "is in ");
  fs::create_directories(folder / "empty");
  expect_contains(error_of(folder / "empty"), "there is no metadata/K.npy in it");
  expect_contains(error_of(folder / "nowhere"), "nowhere");
}

// The bytes of numpy.save for an array of strings, from NumPy's description of the format.
std::string npy_strings(const std::vector<std::vector<std::string>>& rows, size_t characters,
                        bool unicode) {
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                  unicode ? "<U" : "|S", characters, rows.size(), rows[0].size());
  header.resize((10 + header.size()) / 64 * 64 + 64 - 11, ' ');
  header += '\n';
  std::string out = "\x93NUMPY\x01"s + '\0' + static_cast<char>(header.size() & 255) +
                    static_cast<char>(header.size() >> 8) + header;
  for (const auto& row : rows) {
    for (std::string cell : row) {
      cell.resize(characters);
      for (const char c : cell) out += unicode ? std::string{c, '\0', '\0', '\0'} : std::string{c};
    }
  }
  return out;
}

TEST(PathfinderMetadata, ReadsArraysOfStrings) {
  const std::vector<std::vector<std::string>> rows{
      {"imgs/7", "sample_0.png", "0", "1", "1.8", "14", "4", "5", "1.5", "3", "1"},
      {"imgs/7", "sample_1.png", "1", "0", "1.8", "14", "4", "5", "1.5", "2", "1"}};
  for (const bool unicode : {true, false}) {
    const std::string bytes = npy_strings(rows, 32, unicode);
    const auto entries = parse_pathfinder_metadata(bytes, "f");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].file, "imgs/7/sample_0.png");
    EXPECT_EQ(entries[0].label, 1);
    EXPECT_EQ(entries[1].file, "imgs/7/sample_1.png");
    EXPECT_EQ(entries[1].label, 0);
    EXPECT_EQ(entries[1].line, 2);
    for (size_t size = 6; size < bytes.size(); size += 5) {
      expect_contains(test::message_of<std::runtime_error>(
                          [&] { parse_pathfinder_metadata(bytes.substr(0, size), "f"); }),
                      "f: ");
    }
    EXPECT_THROW(parse_pathfinder_metadata(bytes + "x", "f"), std::runtime_error);
  }
  auto wrong = rows;
  wrong[1][3] = "7";
  expect_contains(test::message_of<std::runtime_error>(
                      [&] { parse_pathfinder_metadata(npy_strings(wrong, 20, true), "f"); }),
                  "f:2: the label is \"7\"");
  std::string objects = npy_strings(rows, 32, true);
  objects.replace(objects.find("<U32"), 4, "|O\0\0"s.substr(0, 2));
  EXPECT_THROW(parse_pathfinder_metadata(objects, "f"), std::runtime_error);
}

TEST(PathfinderFiles, AreWhatTheTaskReads) {
  const test::Folder folder;
  PathfinderFiles files;
  files.count = 30;
  files.per_folder = 12;
  files.seed = 4;
  PathfinderOptions options = pathfinder_preset(32);
  int64_t last = 0;
  files.progress = [&](int64_t done) { last = done; };
  write_pathfinder(folder.path(), options, files);
  EXPECT_EQ(last, 30);
  const fs::path set = folder / "pathfinder32/curv_contour_length_14";
  EXPECT_EQ(pathfinder_folder(folder.path(), options), set);
  std::ifstream list(set / "metadata/2.npy");
  std::string line;
  std::getline(list, line);
  EXPECT_EQ(line,
            fmt::format("imgs/2 sample_0.png 0 {} 1.0 14 4 2 0.5 1 1", pathfinder_label(4, 24)));
  const Records r = read(folder.path());
  ASSERT_EQ(r.size(), 30);
  int ones = 0;
  for (int64_t i = 0; i < 30; ++i) {
    int k = 0, number = 0;
    ASSERT_EQ(std::sscanf(r.examples[i].name.c_str(), "imgs/%d/sample_%d.png", &k, &number), 2);
    const auto index = static_cast<uint64_t>(12 * k + number);
    const PathfinderScene scene = draw_pathfinder_scene(options, 4, index);
    EXPECT_EQ(r.labels[i], scene.label);
    ones += scene.label;
    const Image image = draw_pathfinder(options, scene);
    const auto bytes = r.sequences.at(i);
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(image.pixels)).begin()));
  }
  EXPECT_EQ(ones, 15);
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    out[name] = entry.is_regular_file() ? read_file(entry.path()) : "";
  }
  return out;
}

TEST(PathfinderFiles, AreTheSameForAnyNumberOfThreads) {
  const test::Folder folder;
  PathfinderFiles files;
  files.count = 50;
  for (const int threads : {1, 2, 5}) {
    files.threads = threads;
    write_pathfinder(folder / std::to_string(threads), pathfinder_preset(32), files);
  }
  EXPECT_EQ(contents(folder / "1"), contents(folder / "2"));
  EXPECT_EQ(contents(folder / "1"), contents(folder / "5"));
  EXPECT_EQ(contents(folder / "1").size(), 50u + 6) << "and nothing is left over";
}

TEST(PathfinderFiles, ASetIsWholeOrNotThere) {
  const test::Folder folder;
  PathfinderFiles files;
  files.count = 40;
  files.threads = 2;
  files.progress = [](int64_t done) {
    if (done >= 20) throw std::runtime_error("enough");
  };
  const PathfinderOptions options = pathfinder_preset(32);
  EXPECT_EQ(test::message_of<std::runtime_error>(
                [&] { write_pathfinder(folder.path(), options, files); }),
            "enough");
  EXPECT_EQ(contents(folder.path()).size(), 1u) << "pathfinder32, which is empty";

  files.progress = nullptr;
  write_pathfinder(folder.path(), options, files);
  const auto first = contents(folder.path());
  files.seed = 1;
  expect_contains(test::message_of<std::invalid_argument>(
                      [&] { write_pathfinder(folder.path(), options, files); }),
                  "there is a set already");
  EXPECT_EQ(contents(folder.path()), first);
  files.overwrite = true;
  files.progress = [](int64_t) { throw std::runtime_error("again"); };
  EXPECT_THROW(write_pathfinder(folder.path(), options, files), std::runtime_error);
  EXPECT_EQ(contents(folder.path()), first) << "the old set outlives a failure";
  files.progress = nullptr;
  write_pathfinder(folder.path(), options, files);
  EXPECT_NE(contents(folder.path()), first);
  EXPECT_EQ(contents(folder.path()).size(), first.size());
}

TEST(Pathfinder, IsMadeOnTheSpot) {
  TaskOptions o;
  o.name = "pathfinder";
  o.cache = "none";
  o.counts = {20, 6, 4};
  const Records one = read_task(o, 1), two = read_task(o, 3);
  ASSERT_EQ(one.size(), 30);
  std::map<Split, int> counts;
  std::map<std::string, std::string> pixels;
  for (int64_t i = 0; i < 30; ++i) {
    ++counts[one.examples[i].split];
    const auto a = one.sequences.at(i), b = two.sequences.at(i);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    EXPECT_EQ(one.labels[i], two.labels[i]);
    pixels[one.examples[i].name].assign(reinterpret_cast<const char*>(a.data()), a.size());
  }
  EXPECT_EQ(counts,
            (std::map<Split, int>{{Split::train, 20}, {Split::validation, 6}, {Split::test, 4}}));
  // More of train leaves the others as they were.
  o.counts.train = 30;
  const Records more = read_task(o, 2);
  for (int64_t i = 0; i < more.size(); ++i) {
    const auto found = pixels.find(more.examples[i].name);
    if (found == pixels.end()) continue;
    const auto a = more.sequences.at(i);
    EXPECT_EQ(found->second, std::string(reinterpret_cast<const char*>(a.data()), a.size()));
  }
  o.name = "pathx";
  o.counts = {2, 2, 2};
  const Records large = read_task(o, 1);
  EXPECT_EQ(large.steps(0), 128 * 128);
}

TEST(Pathfinder, PicturesToPredict) {
  const test::Folder folder;
  make_set(folder.path());
  const TaskOptions o = options_for(folder.path());
  const TaskFacts facts = load_task(o, 1).facts;
  const InputReader reader(o, facts);
  EXPECT_EQ(reader.file(folder / "imgs/1/sample_2.png", 1).size(), 1);
  EXPECT_EQ(reader.file(folder / "imgs/1", 1).size(), 10);
  write(folder / "wrong.png", picture(0, 28));
  EXPECT_THROW(reader.file(folder / "wrong.png", 1), std::runtime_error);
}

}  // namespace
}  // namespace rotrnn
