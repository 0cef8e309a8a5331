#include "rotrnn/training/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/sha.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::message_of;

const std::vector<std::string> kFiles{"SHA256SUMS", "optimiser.safetensors", "state.json",
                                      "weights.safetensors"};

// Tensors of drawn numbers by name and shape.
class Tensors {
 public:
  explicit Tensors(uint64_t seed) : random_(seed) {}

  void add(const std::string& name, std::vector<int64_t> shape) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float>& values = values_.emplace_back(count);
    for (float& value : values) value = std::normal_distribution<float>()(random_);
    tensors_.push_back({name, {Dtype::f32, std::move(shape), std::as_bytes(std::span(values))}});
  }
  const std::vector<NamedTensor>& get() const { return tensors_; }

 private:
  std::mt19937_64 random_;
  std::list<std::vector<float>> values_;
  std::vector<NamedTensor> tensors_;
};

// What a RotRNN of two blocks on two channels would write.
class CheckpointTest : public testing::Test {
 protected:
  static constexpr int64_t kWidth = 6, kState = 8, kHeads = 2, kDepth = 2;

  CheckpointTest() {
    ModelOptions& m = header_.config.model;
    m.width = kWidth;
    m.state = kState;
    m.rotrnn.heads = kHeads;
    m.depth = kDepth;
    TaskFacts& f = header_.facts;
    f.typical_length = 40;
    f.classes = {"a", "b", "c"};
    f.shape = {InputKind::channels, 2, TargetKind::classes, 3, 1, false};
    f.preprocessing.kind = Preprocessing::Kind::values;
    f.preprocessing.form.element = Element::f32;
    f.preprocessing.form.channels = 2;
    f.preprocessing.mean = {0.5, -3};
    f.preprocessing.deviation = {2, 0.25};
    header_.state = {120, 4000, 0.5, 100, 3.25, 4, 3, 1};
  }

  static Tensors weights(uint64_t seed, int64_t depth = kDepth) {
    Tensors t(seed);
    t.add("encoder.weight", {kWidth, 2});
    t.add("encoder.bias", {kWidth});
    for (int64_t i = 0; i < depth; ++i) {
      const std::string block = "blocks." + std::to_string(i) + ".";
      t.add(block + "layer.B", {kHeads, kState / kHeads, kWidth});
      t.add(block + "layer.M", {kHeads, kState / kHeads, kState / kHeads});
      t.add(block + "gate.weight", {kWidth, kWidth});
      t.add(block + "norm.running_var", {kWidth});
    }
    t.add("head.weight", {3, kWidth});
    t.add("head.bias", {3});
    return t;
  }

  fs::path write(const std::string& name, uint64_t seed = 1) {
    write_checkpoint(folder_ / name, header_, weights(seed).get(), weights(seed + 1000).get());
    return folder_ / name;
  }

  // With another state.json, and checksums that fit: what a stranger could make.
  fs::path forge(const std::function<void(CheckpointHeader&)>& change) {
    const fs::path folder = write("forged");
    CheckpointHeader header = header_;
    change(header);
    put(folder / "state.json", header_text(header));
    std::string sums;
    for (const char* name : {"optimiser.safetensors", "state.json", "weights.safetensors"}) {
      sums += sha256_hex(read_file(folder / name)) + "  " + name + "\n";
    }
    put(folder / "SHA256SUMS", sums);
    return folder;
  }

  static std::string refused(const fs::path& folder, Parts parts = Parts::all) {
    return message_of<std::runtime_error>([&] { read_checkpoint(folder, parts); });
  }

  static void put(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  Folder folder_;
  CheckpointHeader header_;
};

bool same(const SafeTensorFile& file, const std::vector<NamedTensor>& tensors) {
  bool equal = file.names().size() == tensors.size();
  for (const auto& [name, tensor] : tensors) {
    equal = equal && std::ranges::equal(file.at(name).data, tensor.data);
  }
  return equal;
}

TEST_F(CheckpointTest, ReadsBackWhatWasWritten) {
  const fs::path folder = write("last");
  const Checkpoint read = read_checkpoint(folder, Parts::all);
  EXPECT_TRUE(same(*read.weights, weights(1).get()));
  EXPECT_TRUE(same(*read.moments, weights(1001).get()));
  EXPECT_TRUE(read.checked);
  EXPECT_EQ(header_text(read.header), header_text(header_));
  EXPECT_EQ(read.header.state.skipped, 3);
  // The list is what sha256sum reads: digits, two blanks, name.
  std::string expected;
  for (const char* name : {"optimiser.safetensors", "state.json", "weights.safetensors"}) {
    expected += sha256_hex(read_file(folder / name)) + "  " + name + "\n";
  }
  EXPECT_EQ(read_file(folder / "SHA256SUMS"), expected);
}

// Whatever happens to one file, nothing is read as if it were right.
TEST_F(CheckpointTest, AThousandRandomCorruptionsAreRefused) {
  const fs::path good = write("good"), other = write("other", 7);
  std::mt19937_64 random(5);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const fs::path folder = folder_ / "bad";
  for (int i = 0; i < 1000; ++i) {
    fs::remove_all(folder);
    fs::copy(good, folder);
    const std::string& name = kFiles[below(kFiles.size())];
    const std::string before = read_file(folder / name);
    std::string bytes = before;
    switch (below(8)) {
      case 0:
      case 1: {
        char& byte = bytes[below(bytes.size())];
        byte = static_cast<char>(byte ^ (1 << below(8)));
        break;
      }
      case 2:
        bytes.resize(below(bytes.size()));
        break;
      case 3:
        bytes.append(1 + below(100), static_cast<char>(below(256)));
        break;
      case 4: {  // a block of zeros, as a disk that lost its cache leaves it
        const size_t begin = below(bytes.size());
        std::fill_n(bytes.begin() + static_cast<long>(begin),
                    std::min<size_t>(bytes.size() - begin, 1 + below(512)), '\0');
        break;
      }
      case 5:
        bytes = read_file(folder / kFiles[below(kFiles.size())]);
        break;
      case 6:
        bytes = read_file(other / name);
        break;
      default:
        fs::remove(folder / name);
        EXPECT_FALSE(refused(folder).empty()) << name << " removed";
        continue;
    }
    if (bytes == before) continue;
    put(folder / name, bytes);
    EXPECT_FALSE(refused(folder).empty()) << name << ", corruption " << i;
  }
}

TEST_F(CheckpointTest, EveryByteOfEveryFileCounts) {
  const fs::path folder = write("last");
  for (const std::string& name : kFiles) {
    const std::string bytes = read_file(folder / name);
    for (size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 200) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 0x20);
      put(folder / name, changed);
      EXPECT_FALSE(refused(folder).empty()) << name << ", byte " << i;
    }
    put(folder / name, bytes);
    EXPECT_NO_THROW(read_checkpoint(folder, Parts::all));
  }
}

TEST_F(CheckpointTest, FormatTwoHasNoChecksumsAndIsRead) {
  const fs::path folder = write("last");
  auto json = nlohmann::json::parse(read_file(folder / "state.json"));
  json["format"] = 2;
  json["state"].erase("skipped");
  json["state"].erase("skipped_in_a_row");
  put(folder / "state.json", json.dump());
  EXPECT_NE(refused(folder).find("state.json: damaged"), std::string::npos);
  fs::remove(folder / "SHA256SUMS");
  const Checkpoint read = read_checkpoint(folder, Parts::all);
  EXPECT_FALSE(read.checked);
  EXPECT_EQ(read.header.state.step, 120);
  EXPECT_EQ(read.header.state.skipped, 0);
  // Format 3 without them is one that was not finished.
  write("last");
  fs::remove(folder / "SHA256SUMS");
  EXPECT_NE(refused(folder).find("SHA256SUMS: is missing"), std::string::npos);
}

TEST_F(CheckpointTest, BestHasNoMoments) {
  write_checkpoint(folder_ / "best", header_, weights(1).get(), {});
  EXPECT_NO_THROW(read_checkpoint(folder_ / "best", Parts::weights));
  EXPECT_NE(refused(folder_ / "best").find("optimiser.safetensors"), std::string::npos);
}

// A state.json of a kilobyte must not make a network of a terabyte.
TEST_F(CheckpointTest, SizesThatTheWeightsDoNotHaveAreRefused) {
  const auto says = [&](auto change, const char* what) {
    const std::string message = refused(forge(change), Parts::weights);
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  says([](CheckpointHeader& h) { h.config.model.width = 60000; }, "expected [60000, 2]");
  says([](CheckpointHeader& h) { h.config.model.state = 60000; }, "block 0 has");
  says([](CheckpointHeader& h) { h.config.model.depth = 1000; }, "block 2 has 0 numbers");
  says([](CheckpointHeader& h) { h.config.model.depth = 1; }, "none of 1 equal blocks");
  says(
      [](CheckpointHeader& h) {
        h.facts.shape.inputs = h.facts.preprocessing.form.channels = 1 << 20;
        h.facts.preprocessing.mean.assign(1 << 20, 0);
        h.facts.preprocessing.deviation.assign(1 << 20, 1);
      },
      "expected [6, 1048576]");
  says([](CheckpointHeader& h) { h.state.step = -1; }, "counts are inconsistent");
  says([](CheckpointHeader& h) { h.state.skipped = 500; }, "counts are inconsistent");
}

TEST_F(CheckpointTest, ResumesFromTheNewestThatIsWhole) {
  const auto save = [&](const std::string& name, int64_t step) {
    header_.state.step = step;
    return write(name);
  };
  const auto found = [&] { return find_resumable(folder_.path(), Parts::all); };
  EXPECT_FALSE(can_resume(folder_.path()));
  save("last.new", 10);
  EXPECT_FALSE(can_resume(folder_.path())) << "the first one was not finished";
  fs::remove_all(folder_ / "last.new");
  save("step-5", 5);
  save("step-40", 40);
  save("previous", 50);
  save("last", 60);
  EXPECT_TRUE(can_resume(folder_.path()));
  EXPECT_EQ(found().checkpoint.header.state.step, 60);
  EXPECT_TRUE(found().damage.empty());

  const auto damage = [&](const char* name) {
    std::string bytes = read_file(folder_ / name / "optimiser.safetensors");
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    put(folder_ / name / "optimiser.safetensors", bytes);
  };
  damage("last");
  const Resumable before = found();
  EXPECT_EQ(before.checkpoint.header.state.step, 50);
  ASSERT_EQ(before.damage.size(), 1);
  EXPECT_NE(before.damage[0].find("last/optimiser.safetensors: damaged"), std::string::npos);

  // The damaged one is not in the way of the next, which must not push out the good one.
  settle(folder_.path(), before);
  EXPECT_FALSE(fs::exists(folder_ / "last"));
  EXPECT_TRUE(fs::exists(folder_ / "last.damaged"));
  save("last.new", 70);
  rotate_folder(folder_ / "last.new", folder_ / "last", folder_ / "previous");
  EXPECT_EQ(found().checkpoint.header.state.step, 70);
  EXPECT_EQ(read_checkpoint(folder_ / "previous", Parts::all).header.state.step, 50);

  damage("last");
  damage("previous");
  EXPECT_EQ(found().checkpoint.header.state.step, 40) << "by number, not by name";
  damage("step-40");
  damage("step-5");
  const auto message = message_of<std::runtime_error>(found);
  for (const char* name : {"no checkpoint is whole", "last/", "previous/", "step-40/", "step-5/"}) {
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST_F(CheckpointTest, AWholeNewOneIsTakenWhenTheLastIsNot) {
  header_.state.step = 7;
  write("last.new");
  fs::create_directories(folder_ / "last");
  const Resumable found = find_resumable(folder_.path(), Parts::all);
  EXPECT_EQ(found.checkpoint.header.state.step, 7);
  settle(folder_.path(), found);
  tidy_run(folder_.path());
  EXPECT_EQ(read_checkpoint(folder_ / "last", Parts::all).header.state.step, 7);
}

TEST_F(CheckpointTest, TidyingLeavesWhatIsWhole) {
  for (const char* name : {"last", "previous", "best", "step-3"}) write(name);
  for (const char* name : {"last.new", "best.new", "step-6.new"}) {
    fs::create_directories(folder_ / name);
  }
  put(folder_ / "metrics.jsonl", "{}\n");
  put(folder_ / "events.out.tfevents.1700000000.host.7", "points");
  put(folder_ / "config.toml.tmp-12-0", "half");
  put(folder_ / "mine.new", "of the user");
  tidy_run(folder_.path());
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      found.insert(entry.path().filename());
    }
    return found;
  };
  EXPECT_EQ(names(), (std::set<std::string>{"last", "previous", "best", "step-3", "metrics.jsonl",
                                            "events.out.tfevents.1700000000.host.7", "mine.new"}));
  clear_run(folder_.path());
  EXPECT_EQ(names(), (std::set<std::string>{"mine.new"}));
}

}  // namespace
}  // namespace rotrnn
