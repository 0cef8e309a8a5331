#include "rotrnn/onnx/export.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

std::string folded(const std::string& name) {
  const auto cases = nlohmann::json::parse(read_file(fs::path(ROTRNN_FOLDED) / "cases.json"));
  for (const auto& one : cases.at("cases")) {
    if (one.at("name") == name) {
      return read_file(fs::path(ROTRNN_FOLDED) / one.at("file").get<std::string>());
    }
  }
  throw std::runtime_error("no case " + name);
}

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// What compare.py runs. ONNX's checker sees every one.
TEST(OnnxExport, WritesTheGraphsOfEveryModel) {
  const fs::path out = ROTRNN_ONNX_GRAPHS;
  fs::remove_all(out);
  fs::create_directories(out);
  const auto cases = nlohmann::json::parse(read_file(fs::path(ROTRNN_FOLDED) / "cases.json"));
  size_t written = 0;
  for (const auto& one : cases.at("cases")) {
    SCOPED_TRACE(one.at("name"));
    const auto file = one.at("file").get<std::string>();
    const OnnxReport report = write_onnx(read_file(fs::path(ROTRNN_FOLDED) / file), file,
                                         {out / fs::path(file).replace_extension(".onnx"), "all"});
    const auto name = one.at("name").get<std::string>();
    const bool apart = name == "patch overlapping" || name == "patch apart";
    const bool streams = one.at("streams").get<bool>() && !apart;
    EXPECT_EQ(report.files.size(), streams ? 3u : 1u);
    EXPECT_EQ(report.whole_only.empty(), streams);
    for (const OnnxFile& graph : report.files) {
      EXPECT_EQ(static_cast<int64_t>(fs::file_size(graph.file)), graph.bytes);
      ++written;
    }
  }
  EXPECT_GT(written, 150u);
  EXPECT_EQ(files_in(out), written);
}

TEST(OnnxExport, NamesOfFiles) {
  const test::Folder folder;
  const std::string plain = folded("plain"), both = folded("bidirectional mean");
  write_onnx(plain, "m", {folder / "a.onnx", "all"});
  for (const char* name : {"a.step.onnx", "a.chunk.onnx", "a.sequence.onnx"}) {
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
  write_onnx(plain, "m", {folder / "b.c", "all"});
  EXPECT_TRUE(fs::exists(folder / "b.c.step.onnx"));
  write_onnx(plain, "m", {folder / "just this", "step"});
  EXPECT_TRUE(fs::exists(folder / "just this"));
  EXPECT_EQ(read_file(folder / "just this"), read_file(folder / "a.step.onnx"));
  EXPECT_EQ(files_in(folder.path()), 7u);
  // What is not written is not in the way.
  EXPECT_EQ(write_onnx(both, "m", {folder / "c.onnx", "all"}).files.size(), 1u);
  std::ofstream(folder / "d.step.onnx") << "mine";
  EXPECT_EQ(write_onnx(both, "m", {folder / "d.onnx", "all"}).files[0].graph, "sequence");
  EXPECT_EQ(read_file(folder / "d.step.onnx"), "mine");
}

template <typename Error>
std::string error_of(const std::string& bytes, const OnnxRequest& request) {
  try {
    write_onnx(bytes, "model.file", request);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OnnxExport, WrongUse) {
  const test::Folder folder;
  const std::string plain = folded("plain");
  const auto says = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  using Argument = std::invalid_argument;
  for (const char* name : {"bidirectional mean", "pairs"}) {
    const std::string message = error_of<Argument>(folded(name), {folder / "a.onnx", "step"});
    says(message, "model.file: ");
    says(message, "use --graph sequence");
    says(error_of<Argument>(folded(name), {folder / "a.onnx", "chunk"}), "no chunk graph");
  }
  says(error_of<Argument>(plain, {folder / "a.onnx", "loop"}), "\"loop\"");
  says(error_of<Argument>(plain, {folder.path()}), "give a file, such as");
  says(error_of<std::runtime_error>("no model", {folder / "a.onnx"}), "model.file");
  says(error_of<std::runtime_error>(plain.substr(0, plain.size() - 1), {folder / "a.onnx"}),
       "model.file");
  says(error_of<std::runtime_error>(plain, {folder / "nowhere/a.onnx"}), "nowhere");
  EXPECT_EQ(files_in(folder.path()), 0u);

  // One of the three exists.
  std::ofstream(folder / "a.chunk.onnx") << "mine";
  says(error_of<Argument>(plain, {folder / "a.onnx"}), "a.chunk.onnx: exists");
  EXPECT_EQ(files_in(folder.path()), 1u);
  EXPECT_EQ(read_file(folder / "a.chunk.onnx"), "mine");
  write_onnx(plain, "m", {folder / "a.onnx", "all", true});
  EXPECT_NE(read_file(folder / "a.chunk.onnx"), "mine");
  fs::create_directory(folder / "b.sequence.onnx");
  says(error_of<Argument>(plain, {folder / "b.onnx", "all", true}), "is a folder");
  EXPECT_EQ(files_in(folder.path()), 4u);
}

}  // namespace
}  // namespace rotrnn
