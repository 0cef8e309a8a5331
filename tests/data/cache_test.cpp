#include "rotrnn/data/cache.h"

#include <gtest/gtest.h>

#include <cstring>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::Folder;

Records some_records() {
  RecordWriter out;
  out.form({Element::i16, 1, 0.5, 1}, "t");
  for (int i = 0; i < 5; ++i) {
    Record r;
    r.name = std::to_string(i);
    r.group = "g";
    r.split = i == 0 ? Split::test : Split::train;
    r.label = std::to_string(i % 2);
    r.values = {0.1f * static_cast<float>(i), 1e-30f};
    const std::vector<int16_t> samples(static_cast<size_t>(i) + 1, static_cast<int16_t>(-i));
    out.add_values(std::move(r), std::span<const int16_t>(samples));
  }
  out.skip("x.wav: empty");
  return out.finish();
}

TEST(Cache, GivesBackWhatItGot) {
  const Folder folder;
  const Records a = some_records();
  save_cached(folder.path(), "key", a);
  const auto b = load_cached(folder.path(), "key");
  ASSERT_TRUE(b);
  EXPECT_TRUE(b->form == a.form);
  EXPECT_EQ(b->labels, a.labels);
  EXPECT_EQ(b->classes, a.classes);
  EXPECT_EQ(b->skipped, 1);
  EXPECT_EQ(b->warnings, a.warnings);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(b->examples[i].name, a.examples[i].name);
    EXPECT_EQ(b->examples[i].split, a.examples[i].split);
    EXPECT_EQ(b->examples[i].group, a.examples[i].group);
    EXPECT_EQ(b->examples[i].values, a.examples[i].values);
    EXPECT_EQ(b->examples[i].label, a.examples[i].label);
    const auto x = a.sequences.at(i), y = b->sequences.at(i);
    ASSERT_EQ(x.size(), y.size());
    EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size()), 0);
  }
  EXPECT_FALSE(load_cached(folder.path(), "other"));
  EXPECT_EQ(cache_size(folder.path(), false).sets, 1);
  EXPECT_EQ(cache_size(folder.path(), true).sets, 1);
  EXPECT_EQ(cache_size(folder.path(), false).sets, 0);
}

TEST(Cache, ADamagedFileIsNoFile) {
  const Folder folder;
  save_cached(folder.path(), "key", some_records());
  const auto file = folder / "key.records";
  const std::string whole = read_file(file);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{30}, whole.size() - 1}) {
    write_file_atomically(file, whole.substr(0, size));
    EXPECT_FALSE(load_cached(folder.path(), "key")) << size;
  }
  write_file_atomically(file, whole + "x");
  EXPECT_FALSE(load_cached(folder.path(), "key"));
  std::string other = whole;
  other[7] ^= 1;
  write_file_atomically(file, other);
  EXPECT_FALSE(load_cached(folder.path(), "key")) << "another version";
  // Sizes that add up to the right sum and are wrong.
  std::string sizes = whole;
  const size_t at = sizes.find("\"sizes\":[2,4,6,8,10]");
  ASSERT_NE(at, std::string::npos);
  sizes.replace(at, 20, "\"sizes\":[-2,8,6,8,10");
  sizes.replace(at + 20, 2, "] ");
  write_file_atomically(file, sizes);
  EXPECT_FALSE(load_cached(folder.path(), "key"));
}

TEST(Cache, TheKeyFollowsContentNamesAndSettings) {
  const Folder folder;
  TaskOptions o;
  o.name = "text_folder";
  o.path = folder.path();
  write_file_atomically(folder / "a.txt", "small");
  EXPECT_EQ(cache_key(o, 2), "") << "nothing to gain";
  std::string large(5 << 20, 'x');
  write_file_atomically(folder / "b.txt", large);
  const std::string key = cache_key(o, 2);
  EXPECT_NE(key, "");
  EXPECT_EQ(cache_key(o, 1), key);
  TaskOptions same = o;
  same.keep_every = 2;
  same.counts.train = 3;
  same.normalisation = Scaling::none;
  EXPECT_EQ(cache_key(same, 1), key) << "does not change what is read";
  TaskOptions changed = o;
  changed.label_pattern = "x";
  EXPECT_NE(cache_key(changed, 1), key);
  // A byte inside, with the size and the time as they were.
  const auto time = std::filesystem::last_write_time(folder / "b.txt");
  large[1000] = 'y';
  write_file_atomically(folder / "b.txt", large);
  std::filesystem::last_write_time(folder / "b.txt", time);
  const std::string after = cache_key(o, 1);
  EXPECT_NE(after, key);
  std::filesystem::rename(folder / "a.txt", folder / "c.txt");
  EXPECT_NE(cache_key(o, 1), after);
  o.cache = "none";
  EXPECT_EQ(cache_key(o, 1), "");
}

}  // namespace
}  // namespace rotrnn
