#include "rotrnn/distributed/watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>

namespace rotrnn {
namespace {

using std::chrono::milliseconds;

// A board in memory that can be cut off.
struct Memory {
  std::mutex mutex;
  std::map<std::string, std::string> values;
  bool broken = false;

  Board board() {
    const auto locked = [this](auto f) {
      return [this, f](const std::string& key, const auto&... value) {
        const std::lock_guard lock(mutex);
        if (broken) throw std::runtime_error("broken");
        return f(key, value...);
      };
    };
    Board b;
    b.write = locked([this](const std::string& k, const std::string& v) { values[k] = v; });
    b.read = locked([this](const std::string& k) -> std::optional<std::string> {
      const auto found = values.find(k);
      if (found == values.end()) return {};
      return found->second;
    });
    b.claim = locked([this](const std::string& k, const std::string& v) {
      return values.emplace(k, v).first->second;
    });
    return b;
  }
};

struct Ranks {
  explicit Ranks(int size, WatchLimits limits = {0.02, 0.5, 0.15, 10}) {
    std::vector<std::string> names;
    for (int i = 0; i < size; ++i) names.push_back("rank " + std::to_string(i));
    for (int i = 0; i < size; ++i) {
      watches.push_back(std::make_unique<Watch>(memory.board(), i, names, limits,
                                                [this](const std::string& v) { abandoned = v; }));
    }
  }

  // The verdict of a rank, once it has one, and the seconds it took.
  std::string wait(int rank, double* seconds = nullptr) {
    const auto begin = std::chrono::steady_clock::now();
    std::string verdict;
    while (verdict.empty() && std::chrono::steady_clock::now() - begin < milliseconds(5000)) {
      std::this_thread::sleep_for(milliseconds(5));
      verdict = watches[static_cast<size_t>(rank)]->verdict();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (seconds) *seconds = took.count();
    return verdict;
  }

  Memory memory;
  std::string abandoned;
  std::vector<std::unique_ptr<Watch>> watches;
};

TEST(Watch, IsSilentWhileAllIsWell) {
  Ranks ranks(3);
  for (auto& watch : ranks.watches) watch->enter(false);
  for (auto& watch : ranks.watches) watch->leave();
  std::this_thread::sleep_for(milliseconds(800));  // longer than the limit
  for (auto& watch : ranks.watches) EXPECT_EQ(watch->verdict(), "");
}

TEST(Watch, NamesARankThatDied) {
  Ranks ranks(3);
  std::this_thread::sleep_for(milliseconds(100));
  ranks.watches[2].reset();
  EXPECT_NE(ranks.wait(1).find("rank 2 has not been heard of"), std::string::npos);
  EXPECT_NE(ranks.wait(0).find("rank 2 has not been heard of"), std::string::npos);
}

TEST(Watch, NamesRankZeroWhenItDied) {
  Ranks ranks(2);
  std::this_thread::sleep_for(milliseconds(100));
  ranks.watches[0].reset();
  EXPECT_NE(ranks.wait(1).find("rank 0 has not been heard of"), std::string::npos);
}

TEST(Watch, IsQuickOnceAMessageFailed) {
  Ranks ranks(3, {0.02, 60, 0.15, 10});
  std::this_thread::sleep_for(milliseconds(100));
  ranks.watches[2].reset();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(ranks.watches[1]->settle("connection reset").find("rank 2"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_NE(ranks.wait(0).find("rank 2"), std::string::npos);
}

TEST(Watch, SaysTheReasonWhenAllAreAlive) {
  Ranks ranks(2);
  const std::string verdict = ranks.watches[1]->settle("connection reset");
  EXPECT_NE(verdict.find("connection reset"), std::string::npos);
  EXPECT_EQ(ranks.wait(0), verdict);
}

TEST(Watch, NamesARankThatHangs) {
  Ranks ranks(3);
  for (auto& watch : ranks.watches) watch->enter(false);
  for (auto& watch : ranks.watches) watch->leave();
  ranks.watches[0]->enter(false);
  ranks.watches[2]->enter(false);  // and rank 1 does not come
  EXPECT_NE(ranks.wait(0).find("rank 1 is alive but the others have waited"), std::string::npos);
  EXPECT_NE(ranks.wait(1).find("rank 1"), std::string::npos);
}

TEST(Watch, WaitsPatientlyForTheLiving) {
  Ranks ranks(2);
  ranks.watches[0]->enter(true);
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_EQ(ranks.watches[0]->verdict(), "");
  ranks.watches[1].reset();
  EXPECT_NE(ranks.wait(0).find("rank 1"), std::string::npos);
}

TEST(Watch, PassesOnWhyARankFailed) {
  Ranks ranks(3);
  ranks.watches[1]->report("the disk is full");
  EXPECT_EQ(ranks.wait(0), "rank 1 failed: the disk is full");
  EXPECT_EQ(ranks.wait(2), "rank 1 failed: the disk is full");
}

TEST(Watch, NamesTheKeeperOfABrokenBoard) {
  Ranks ranks(2);
  std::this_thread::sleep_for(milliseconds(50));
  {
    const std::lock_guard lock(ranks.memory.mutex);
    ranks.memory.broken = true;
  }
  EXPECT_NE(ranks.wait(1).find("rank 0 cannot be reached"), std::string::npos);
}

TEST(Watch, AbandonsAProcessThatDoesNotListen) {
  Ranks ranks(2, {0.02, 0.3, 0.1, 0.2});
  ranks.watches[1].reset();
  std::this_thread::sleep_for(milliseconds(1500));  // nothing asks rank 0 for its verdict
  const std::string verdict = ranks.watches[0]->verdict();
  ranks.watches[0].reset();
  EXPECT_NE(verdict, "");
  EXPECT_EQ(ranks.abandoned, verdict);
}

}  // namespace
}  // namespace rotrnn
