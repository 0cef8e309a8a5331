#include "rotrnn/io/formats/event_file.h"

#include <gtest/gtest.h>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

// What is in the files is tested by decoding them with protobuf: tests/cli/events_test.py.

TEST(EventFile, LaterStartsSortBehindEarlierOnes) {
  const test::Folder folder;
  write_file_atomically(folder / "events.out.tfevents.5000000000.other.1", "of a clock far ahead");
  std::string before = "events.out.tfevents.5000000000.other.1";
  for (int i = 0; i < 3; ++i) {
    const EventFile file(folder.path(), 0);
    const std::string name = file.path().filename();
    EXPECT_TRUE(is_event_file(name)) << name;
    EXPECT_LT(before, name);
    before = name;
  }
}

TEST(EventFile, AFolderThatIsNotThereIsAnError) {
  const auto message =
      test::message_of<std::runtime_error>([] { EventFile("/nowhere/at/all", 0); });
  EXPECT_NE(message.find("/nowhere/at/all/events.out.tfevents."), message.npos) << message;
}

}  // namespace
}  // namespace rotrnn
