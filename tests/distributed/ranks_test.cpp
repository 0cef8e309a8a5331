// Processes as threads of one: what K of them compute on their shards, summed, is what one computes
// on the whole batch.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "rotrnn/model/sequence_model.h"
#include "rotrnn/training/loader.h"
#include "tests/support/examples.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using test::relative_error;
using torch::Tensor;

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
    ++rounds_;
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
  int calls() const { return rounds_; }

 private:
  int size_, came_ = 0, round_ = 0, rounds_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<double> sums_, result_;
};

struct Case {
  std::string name, layer;
  bool prenorm;
  Kernels kernels;
  torch::ScalarType type;
};

class Ranks : public testing::TestWithParam<Case> {};

SequenceModel make_model(const Case& c) {
  ModelOptions m;
  m.layer = c.layer;
  m.width = 6;
  m.state = 8;
  m.heads = 2;
  m.depth = 3;
  m.dropout = 0.3;
  m.prenorm = c.prenorm;
  m.s4.max_length = 64;
  DataShape shape;
  shape.input = InputKind::channels;
  shape.inputs = 2;
  shape.target = TargetKind::values;
  shape.outputs = 3;
  SequenceModel model(m, shape, 1);
  model->to(c.type);
  model->engine.kernels = c.kernels;
  model->engine.threads = 1;
  model->train();
  return model;
}

// One rank's share of the loss of the mean over all sequences.
void compute(SequenceModel& model, const std::vector<Tensor>& sequences, const Tensor& targets,
             const std::vector<int64_t>& mine) {
  std::vector<Tensor> values;
  std::vector<int64_t> offsets{0};
  for (const int64_t i : mine) {
    values.push_back(sequences[static_cast<size_t>(i)]);
    offsets.push_back(offsets.back() + values.back().size(0));
  }
  const Packed input(torch::cat(values), offsets);
  const Tensor y = model->forward(input, {7, 3, mine}).y;
  const Tensor goal = targets.index_select(0, torch::tensor(mine));
  (loss_of(TargetKind::values, y, goal) *
   (static_cast<double>(mine.size()) / static_cast<double>(sequences.size())))
      .backward();
}

TEST_P(Ranks, SumToTheWholeBatch) {
  torch::manual_seed(3);
  const Case& c = GetParam();
  const std::vector<int64_t> lengths{3, 40, 1, 17, 25, 8};
  std::vector<Tensor> sequences;
  std::vector<int64_t> all;
  for (const int64_t length : lengths) {
    // Shifted by the sequence, so that statistics of a part are far from those of all.
    sequences.push_back(torch::randn({length, 2}, c.type) + static_cast<double>(all.size()));
    all.push_back(static_cast<int64_t>(all.size()));
  }
  const Tensor targets = torch::randn({6, 3}, c.type);
  SequenceModel whole = make_model(c);
  compute(whole, sequences, targets, all);

  for (const int size : {2, 3}) {
    Meeting meeting(size);
    std::vector<SequenceModel> models;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) models.push_back(make_model(c));
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        SequenceModel& model = models[static_cast<size_t>(rank)];
        model->engine.reduce = [&](double* v, size_t n) { meeting.sum(v, n); };
        compute(model, sequences, targets, take_shard(lengths, {rank, size}));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(meeting.calls(), 3 * 2 * size);  // a block: once forward, once backward
    // Rounding in another order, through three norms.
    const double tolerance = c.type == torch::kFloat64 ? 1e-11 : 2e-4;
    const auto expected = whole->named_parameters();
    for (const auto& p : expected) {
      Tensor sum = torch::zeros_like(p.value());
      for (auto& model : models) sum += model->named_parameters()[p.key()].grad();
      EXPECT_LE(relative_error(sum, p.value().grad(), 1e-3), tolerance) << size << " " << p.key();
    }
    for (const auto& b : whole->named_buffers()) {
      for (auto& model : models) {
        EXPECT_LE(relative_error(model->named_buffers()[b.key()], b.value()), 1e-5) << b.key();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Ranks,
    testing::Values(Case{"fused", "rotrnn", true, Kernels::fused, torch::kFloat32},
                    Case{"fused_postnorm", "rotrnn", false, Kernels::fused, torch::kFloat32},
                    Case{"reference", "rotrnn", true, Kernels::reference, torch::kFloat64},
                    Case{"reference_postnorm", "lru", false, Kernels::reference, torch::kFloat64},
                    Case{"channels", "s4d", true, Kernels::fused, torch::kFloat32},
                    Case{"convolution", "s4", true, Kernels::reference, torch::kFloat64}),
    [](const auto& info) { return info.param.name; });

TEST(Loader, SharesOfAllRanksMakeTheStep) {
  const Examples examples = test::token_examples(12, 5, 7);
  const DataShape shape{InputKind::tokens, 7, TargetKind::classes, 12};
  std::vector<double> weights;
  for (int i = 0; i < 12; ++i) weights.push_back(1 + i);  // example i is of class i
  for (const bool weighted : {false, true}) {
    const Sampler sampler(12, 8, 5);
    std::vector<int64_t> seen;
    double total = 0, part_tokens = 0;
    for (int rank = 0; rank < 3; ++rank) {
      BatchLoader loader(examples, shape, sampler, 0, 1, 2, {rank, 3},
                         weighted ? weights : std::vector<double>{});
      double whole = 0, mine = 0;
      for (const int64_t i : Sampler(sampler).batch(0)) whole += weighted ? 1.0 + i : 1.0;
      for (const Batch& part : loader.next()) {
        EXPECT_FALSE(part.stand_in);
        total += part.share;
        part_tokens += static_cast<double>(part.tokens);
        mine = 0;
        for (const int64_t i : part.sequences) mine += weighted ? 1.0 + i : 1.0;
        EXPECT_NEAR(part.share, mine / whole, 1e-12);
        seen.insert(seen.end(), part.sequences.begin(), part.sequences.end());
      }
    }
    EXPECT_NEAR(total, 1, 1e-12);
    EXPECT_EQ(part_tokens, 3 * 8 * 5);  // every rank counts the tokens of all
    auto batch = Sampler(sampler).batch(0);
    std::sort(batch.begin(), batch.end());
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, batch);
  }
}

TEST(Loader, GivesAStandInToWhomNothingFalls) {
  const Examples examples = test::token_examples(4, 5, 7);
  const DataShape shape{InputKind::tokens, 7, TargetKind::classes, 4};
  // 5 tokens a sequence and 5 a batch: one sequence for two ranks.
  BatchLoader loader(examples, shape, Sampler(std::vector<int64_t>(4, 5), 5, 0), 0, 1, 1, {1, 2});
  const auto parts = loader.next();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].stand_in);
  EXPECT_EQ(parts[0].share, 0);
  EXPECT_EQ(parts[0].input.layout->sequences(), 1);
}

}  // namespace
}  // namespace rotrnn
