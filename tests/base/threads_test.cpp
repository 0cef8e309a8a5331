// The pool of threads_std.cpp, compiled into a program of its own: the other tests run on OpenMP.
// Under the thread sanitizer:
//   g++ -std=c++20 -O1 -g -fsanitize=thread -I. tests/base/threads_test.cpp
//       rotrnn/base/threads.cpp rotrnn/base/threads_std.cpp -lgtest -lgtest_main -pthread
#include "rotrnn/base/threads.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace rotrnn::kernels {
namespace {

/// How often each t in [0, threads) was run.
std::vector<int> counts(int threads) {
  std::vector<int> runs(static_cast<size_t>(threads));
  parallel_for(threads, [&](int t) { ++runs[static_cast<size_t>(t)]; });
  return runs;
}

TEST(Pool, EveryBodyOnce) {
  EXPECT_STREQ(thread_backend(), "std");
  for (int round = 0; round < 200; ++round) {
    for (int threads : {1, 2, 3, 7, 4, 1, 2}) {
      EXPECT_EQ(counts(threads), std::vector<int>(static_cast<size_t>(threads), 1)) << threads;
    }
  }
}

TEST(Pool, CallerIsZeroAndOthersAreNot) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread::id> ids(4);
    parallel_for(4, [&](int t) { ids[static_cast<size_t>(t)] = std::this_thread::get_id(); });
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 4u);
  }
}

TEST(Pool, ThreadsStay) {
  std::set<std::thread::id> ids;
  std::mutex mutex;
  for (int round = 0; round < 100; ++round) {
    parallel_for(4, [&](int) {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    // Longer than workers spin, in some rounds: they must wake up again.
    if (round % 25 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(ids.size(), 4u);
}

TEST(Pool, BodiesRunAtTheSameTime) {
  std::atomic<int> there = 0;
  bool met = false;
  parallel_for(2, [&](int t) {
    ++there;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (there < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (t == 0) met = there == 2;
  });
  EXPECT_TRUE(met);
}

TEST(Pool, ResultsAreSeenByTheCaller) {
  std::vector<double> values(1000);
  for (int round = 1; round <= 300; ++round) {
    parallel_for(3, [&](int t) {
      for (size_t i = static_cast<size_t>(t); i < values.size(); i += 3) values[i] = round;
    });
    double sum = 0;
    for (double v : values) sum += v;
    ASSERT_EQ(sum, 1000.0 * round);
  }
}

TEST(Pool, ManyCallersAtOnce) {
  std::atomic<int> total = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        for (int runs : counts(3)) total += runs;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 6 * 200 * 3);
}

TEST(Pool, OneCallerHasItTheOthersGoOn) {
  std::atomic<bool> inside = false, leave = false;
  std::thread first([&] {
    parallel_for(2, [&](int) {
      inside = true;
      while (!leave) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  std::set<std::thread::id> ids;
  parallel_for(3, [&](int) { ids.insert(std::this_thread::get_id()); });  // would hang if it waited
  EXPECT_EQ(ids, std::set<std::thread::id>{std::this_thread::get_id()});
  leave = true;
  first.join();
}

TEST(Pool, Nested) {
  std::atomic<int> total = 0;
  parallel_for(3, [&](int) { parallel_for(4, [&](int) { ++total; }); });
  EXPECT_EQ(total, 12);
  EXPECT_EQ(counts(3), std::vector<int>(3, 1));
}

/// The exit code of a child that runs f; 100 when it had to be killed after some seconds.
template <class F>
int in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    f();
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

#ifndef __SANITIZE_THREAD__  // it does not allow threads after fork
TEST(Pool, ChildrenOfForkHaveTheirOwn) {
  counts(3);
  const int code = in_child([] {
    std::set<std::thread::id> ids;
    std::mutex mutex;
    parallel_for(3, [&](int) {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    if (ids.size() != 3 || counts(4) != std::vector<int>(4, 1)) exit(1);
    if (in_child([] { counts(2); }) != 0) exit(2);
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(counts(3), std::vector<int>(3, 1));
}

TEST(Pool, ForkWhileAnotherThreadHasIt) {
  std::atomic<bool> inside = false, leave = false;
  std::thread other([&] {
    parallel_for(2, [&](int) {
      inside = true;
      while (!leave) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  EXPECT_EQ(in_child([] { counts(2); }), 0);
  leave = true;
  other.join();
}

TEST(Pool, ExitDoesNotHang) {
  EXPECT_EQ(in_child([] {}), 0);              // never used
  EXPECT_EQ(in_child([] { counts(2); }), 0);  // waiting
  EXPECT_EQ(in_child([] {                     // by a body on a worker
              parallel_for(2, [](int t) {
                if (t == 1) exit(0);
                for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              });
            }),
            0);
  EXPECT_EQ(in_child([] {  // while another thread has it
              std::atomic<bool> inside = false;
              std::thread([&inside] {
                parallel_for(2, [&inside](int) {
                  inside = true;
                  for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                });
              }).detach();
              while (!inside) std::this_thread::yield();
              exit(0);
            }),
            0);
}
#endif

}  // namespace
}  // namespace rotrnn::kernels
