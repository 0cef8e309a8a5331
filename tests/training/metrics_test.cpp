#include "rotrnn/training/metrics.h"

#include <gtest/gtest.h>

#include <fstream>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

TEST(MetricsLog, ResumeDropsWhatCameAfterTheCheckpointAndATornLine) {
  const test::Folder folder;
  const auto file = folder / "metrics.jsonl";
  std::ofstream(file) << "{\"step\":10,\"split\":\"train\"}\n"
                      << "{\"step\":20,\"split\":\"validation\"}\n"
                      << "not json\n"
                      << "{\"step\":20,\"split\":\"test\"}\n"
                      << "{\"step\":30,\"split\":\"train\"}\n"
                      << "{\"step\":20,\"spl";
  MetricsLog log(file, 20);
  log.write({{"step", 30}, {"split", "train"}, {"loss", 0.5}});
  log.sync();
  EXPECT_EQ(read_file(file),
            "{\"step\":10,\"split\":\"train\"}\n{\"step\":20,\"split\":\"validation\"}\n"
            "{\"step\":30,\"split\":\"train\",\"loss\":0.5}\n");
}

TEST(MetricsLog, NumbersOfALineBecomePoints) {
  using Scalars = std::vector<Scalar>;
  EXPECT_EQ(scalars_of({{"step", 3}, {"split", "train"}, {"loss", 0.5}, {"tokens", 70}}),
            (Scalars{{"train/loss", 0.5}, {"train/tokens", 70}}));
  EXPECT_EQ(
      scalars_of({{"step", 3}, {"split", "norms"}, {"whole", {2.5, 3}}, {"head", {1}}}),
      (Scalars{{"norms/whole/layer0", 2.5}, {"norms/whole/layer1", 3}, {"norms/head/layer0", 1}}));
  // Texts, such as the loss of a step that was not finite, and lists of other things are none.
  EXPECT_EQ(scalars_of({{"step", 3}, {"split", "skipped"}, {"loss", "nan"}, {"examples", {1, 2}}}),
            Scalars());
}

TEST(MetricsLog, FolderThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(MetricsLog("/nowhere/at/all/metrics.jsonl", 0), std::runtime_error);
}

}  // namespace
}  // namespace rotrnn
