#include "rotrnn/data/task_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "rotrnn/data/cache.h"
#include "rotrnn/data/task.h"
#include "rotrnn/data/tasks/pathfinder/pathfinder_files.h"
#include "rotrnn/io/atomic_file.h"
#include "tests/support/sets.h"

namespace rotrnn {
namespace {

using test::Folder;

// Another value, within the bounds of the key.
struct Change {
  void operator()(const IntegerKey& k) const { *k.value += *k.value < k.high ? 1 : -1; }
  void operator()(const NumberKey& k) const {
    *k.value = (*k.value + std::min(k.high, k.low + 1)) / 2;
  }
  void operator()(const ChoiceKey& k) const { k.set((k.get() + 1) % k.names.size()); }
  void operator()(bool* k) const { *k = !*k; }
  void operator()(std::string* k) const { *k += "x"; }
};

TaskOptions changed(TaskOptions options, const std::string& name) {
  for (const TaskKey& k : bind_task_keys(options)) {
    if (k.key.name == name) std::visit(Change(), k.key.place);
  }
  return options;
}

std::vector<std::string> keys_that_affect(const std::set<Affects>& which) {
  TaskOptions options;
  std::vector<std::string> names;
  for (const TaskKey& k : bind_task_keys(options)) {
    if (which.contains(k.affects)) names.push_back(k.key.name);
  }
  return names;
}

TaskOptions small(const std::string& name, const std::filesystem::path& path) {
  TaskOptions o;
  o.name = name;
  o.path = path;
  o.cache = "none";
  o.counts = {6, 3, 3};
  o.listops.min_length = 4;
  o.listops.max_length = 30;
  o.contour_length = 4;
  return o;
}

// Sets of several readers, small enough to be read once for every key.
std::vector<TaskOptions> small_sets(const Folder& folder) {
  test::write_files(
      folder / "texts",
      {{"a/1_x.txt", "one"}, {"a/2_y.txt", "two"}, {"b/3_x.txt", "three"}, {"b/4_y.txt", "four"}});
  write_file_atomically(folder / "rows.csv", "text,kind,who\nsome,a,1\nmore,b,2\nwords,a,1\n");
  write_file_atomically(folder / "steps.csv", "x,y,kind,id\n1,2,a,p\n3,4,a,p\n5,6,b,q\n7,8,b,q\n");
  PathfinderFiles files;
  files.count = 20;
  write_pathfinder(folder / "pictures", pathfinder_preset(32), files);
  std::vector<TaskOptions> sets = {small("listops", ""),
                                   small("pathfinder", ""),
                                   small("text_folder", folder / "texts"),
                                   small("csv", folder / "rows.csv"),
                                   small("series", folder / "steps.csv"),
                                   small("pathfinder", folder / "pictures/pathfinder32")};
  sets[3].text_column = "text";
  sets[3].label_column = sets[4].label_column = "kind";
  sets[3].group_column = "who";
  sets[4].id_column = "id";
  return sets;
}

void expect_same_examples(const Records& a, const Records& b) {
  test::expect_same(a, b);
  for (size_t i = 0; i < a.examples.size(); ++i) {
    EXPECT_EQ(a.examples[i].group, b.examples[i].group);
    EXPECT_EQ(a.examples[i].values, b.examples[i].values);
    EXPECT_EQ(a.examples[i].token_classes, b.examples[i].token_classes);
  }
}

// A key that a reader uses but that is not in the name of cached data would give stale data.
TEST(TaskKeys, ThoseOutsideTheCacheKeyDoNotChangeWhatIsRead) {
  const Folder folder;
  const auto outside = keys_that_affect({Affects::nothing});
  EXPECT_GT(outside.size(), 10u);
  for (const TaskOptions& set : small_sets(folder)) {
    const Records records = read_task(set, 1);
    ASSERT_GE(records.examples.size(), 2u);
    for (const std::string& name : outside) {
      SCOPED_TRACE(set.name + " of \"" + set.path + "\", " + name);
      expect_same_examples(read_task(changed(set, name), 1), records);
    }
  }
}

TEST(TaskKeys, ThoseOfMakingDoNotChangeWhatIsRead) {
  const Folder folder;
  for (const TaskOptions& set : small_sets(folder)) {
    if (set.path.empty()) continue;
    const Records records = read_task(set, 1);
    for (const std::string& name : keys_that_affect({Affects::making})) {
      SCOPED_TRACE(set.name + ", " + name);
      expect_same_examples(read_task(changed(set, name), 1), records);
    }
  }
}

TEST(TaskKeys, TheOthersAreInTheCacheKey) {
  const Folder folder;
  write_file_atomically(folder / "large.txt", std::string(kSmallSet, 'x'));
  TaskOptions read, made;
  read.name = "text_folder";
  read.path = folder.path();
  const std::string read_key = cache_key(read, 1), made_key = cache_key(made, 1);
  EXPECT_NE(read_key, "");
  EXPECT_NE(made_key, "");
  for (const std::string& name : keys_that_affect({Affects::reading})) {
    EXPECT_NE(cache_key(changed(read, name), 1), read_key) << name;
    EXPECT_NE(cache_key(changed(made, name), 1), made_key) << name;
  }
  for (const std::string& name : keys_that_affect({Affects::making})) {
    EXPECT_EQ(cache_key(changed(read, name), 1), read_key) << name;
    EXPECT_NE(cache_key(changed(made, name), 1), made_key) << name;
  }
}

// Pathfinder's reader chooses the splits itself.
TEST(TaskKeys, SplitsOfPathfinderFollowTheirKeys) {
  const Folder folder;
  const TaskOptions set = small_sets(folder).back();
  const auto splits = test::splits(read_task(set, 1));
  for (const char* name : {"task.seed", "task.test_share", "task.validation_share"}) {
    EXPECT_NE(test::splits(read_task(changed(set, name), 1)), splits) << name;
  }
}

}  // namespace
}  // namespace rotrnn
