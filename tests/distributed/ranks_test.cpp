// Processes as threads of one: what K of them compute on their shards, summed, is what one computes
// on the whole batch.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "rotrnn/distributed/shard.h"
#include "rotrnn/network/losses.h"
#include "tests/network/passes.h"
#include "tests/support/numbers.h"

namespace rotrnn {
namespace {

using testing::Doubles;
using testing::relative_error;
using testing::Results;

// Sums what `size` threads bring.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}

  void sum(double* values, size_t count) {
    std::unique_lock lock(mutex_);
    if (came_ == 0) sums_.assign(count, 0);
    EXPECT_EQ(sums_.size(), count);
    for (size_t i = 0; i < count; ++i) sums_[i] += values[i];
    ++came_;
    ++calls_;
    if (came_ == size_) {
      came_ = 0;
      result_ = sums_;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [this, mine = round_] { return round_ != mine; });
    }
    std::copy(result_.begin(), result_.end(), values);
  }
  int calls() const { return calls_; }

 private:
  int size_, came_ = 0, round_ = 0, calls_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<double> sums_, result_;
};

struct Case {
  std::string name, layer;
  bool prenorm;
  bool twins;  // in double
  bool frontend = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class Ranks : public ::testing::TestWithParam<Case> {};

const DataShape kShape{InputKind::channels, 2, TargetKind::values, 3};
constexpr size_t kInputs = 2, kOutputs = 3;

Network make_network(const Case& c) {
  ModelOptions m;
  m.layer = c.layer;
  m.width = 6;
  m.state = 8;
  m.rotrnn.heads = 2;
  m.depth = 3;
  m.dropout = 0.3;
  m.prenorm = c.prenorm;
  m.s5.blocks = 1;
  m.s4.max_length = 64;
  if (c.frontend) {
    m.frontend.kind = FrontendKind::rotations;
    m.frontend.hop = 3, m.frontend.bands = 5, m.frontend.learn = true;
  }
  Network network(m, kShape, 1);
  network.engine.threads = 1;
  return network;
}

struct Data {
  std::vector<int64_t> lengths{3, 40, 1, 17, 25, 8}, all{0, 1, 2, 3, 4, 5};
  std::vector<std::vector<float>> sequences;
  std::vector<float> targets;

  Data() {
    Random random(3, RandomSite::trial);
    for (const int64_t i : all) {
      // Shifted by the sequence, so that statistics of a part are far from those of all.
      sequences.push_back(testing::normal_floats(
          random, kInputs * static_cast<size_t>(lengths[static_cast<size_t>(i)]),
          static_cast<double>(i)));
    }
    targets = testing::normal_floats(random, all.size() * kOutputs);
  }
};

// What one rank computes: its share of the loss of the mean over all sequences.
Results compute(const Case& c, Network& network, const Data& data,
                const std::vector<int64_t>& mine) {
  std::vector<float> values, targets;
  std::vector<int64_t> offsets{0};
  for (const int64_t i : mine) {
    const auto at = static_cast<size_t>(i);
    values.insert(values.end(), data.sequences[at].begin(), data.sequences[at].end());
    offsets.push_back(offsets.back() + data.lengths[at]);
    const auto from = data.targets.begin() + static_cast<ptrdiff_t>(at * kOutputs);
    targets.insert(targets.end(), from, from + kOutputs);
  }
  testing::PassInput in;
  in.network.batch = {offsets, {}, values};
  in.network.mode = Mode::train;
  in.network.dropout = {7, 3, mine};
  in.dy = [&](const Doubles& y) {
    Doubles dy(y.size());
    loss_of<double>({Loss::mean_square}, {mine.size(), nullptr, targets.data()}, y.data(), kOutputs,
                    dy.data(),
                    static_cast<double>(mine.size()) / static_cast<double>(data.all.size()));
    return dy;
  };
  return c.twins ? testing::run_twins<double>(network, in) : testing::run_fused(network, in);
}

TEST_P(Ranks, SumToTheWholeBatch) {
  const Case& c = GetParam();
  const Data data;
  Network one = make_network(c);
  const Results whole = compute(c, one, data, data.all);
  for (const int size : {2, 3}) {
    Meeting meeting(size);
    std::vector<Results> parts(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        Network network = make_network(c);
        network.engine.reduce = [&](double* v, size_t n) { meeting.sum(v, n); };
        parts[static_cast<size_t>(rank)] =
            compute(c, network, data, take_shard(data.lengths, {rank, size}));
      });
    }
    for (std::thread& thread : threads) thread.join();
    // A block: forward once, or for the mean and then for the squares about it; backward once.
    EXPECT_EQ(meeting.calls(), 3 * (c.twins ? 3 : 2) * size);
    // Rounding in another order, through three norms.
    const double tolerance = c.twins ? 1e-11 : 2e-4;
    for (const auto& p : one.layout().parameters) {
      const std::string name = "d " + p.name;
      Doubles sum(p.count);
      for (const Results& part : parts) {
        for (size_t i = 0; i < p.count; ++i) sum[i] += part.at(name)[i];
      }
      EXPECT_LE(relative_error(sum, whole.at(name), 1e-3), tolerance) << size << " " << name;
    }
    for (const auto& b : one.layout().buffers) {
      if (b.integer) continue;
      for (const Results& part : parts) {
        EXPECT_LE(relative_error(part.at(b.name), whole.at(b.name)), 1e-5) << b.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Ranks,
                         ::testing::Values(Case{"fused", "rotrnn", true, false},
                                           Case{"fused_postnorm", "rotrnn", false, false},
                                           Case{"fused_s5", "s5", true, false},
                                           Case{"fused_channels", "s4d", true, false},
                                           Case{"fused_convolution", "s4", false, false},
                                           Case{"fused_frontend", "rotrnn", true, false, true},
                                           Case{"twins", "rotrnn", true, true},
                                           Case{"twins_frontend", "rotrnn", true, true, true},
                                           Case{"twins_postnorm", "lru", false, true},
                                           Case{"twins_channels", "s4d", false, true},
                                           Case{"twins_convolution", "s4", true, true}),
                         [](const auto& info) { return info.param.name; });

// Norms of states are of a rank's own sequences and wait for no other rank.
TEST(RanksAlone, LookAtNormsWithoutTheOthers) {
  Network network = make_network({"", "rotrnn", true, false});
  network.engine.reduce = [](double*, size_t) { ADD_FAILURE() << "waits for the others"; };
  const std::vector<int64_t> offsets{0, 2};
  const std::vector<float> values{1, 2, 3, 4};
  Workspace workspace;
  EXPECT_EQ(network.state_norms({offsets, {}, values}, workspace).blocks.size(), 3u);
}

}  // namespace
}  // namespace rotrnn
