#include "rotrnn/runtime/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/block/activations.h"
#include "rotrnn/kernels/block/pooling.h"
#include "rotrnn/runtime/packed_model.h"
#include "rotrnn/runtime/wave.h"

namespace rotrnn::runtime {
namespace {

// Steps that go through all blocks together: their rows stay in L2, and the weights are read once
// for so many.
constexpr size_t kTile =
    96;  // a multiple of a cache line's floats: the states after it are aligned
// Steps of the sequences that are worked on block by block at the same time.
constexpr int64_t kTogether = 1 << 16;

void check_offsets(std::span<const int64_t> offsets, int64_t steps, int64_t towers) {
  const auto wrong = [](const std::string& what) {
    throw std::invalid_argument("offsets: " + what);
  };
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != steps) {
    wrong(fmt::format("they must begin with 0 and end with {}, the number of steps", steps));
  }
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] <= offsets[i]) {
      wrong(fmt::format("sequence {} goes from {} to {}; each needs a step at least", i, offsets[i],
                        offsets[i + 1]));
    }
  }
  if (std::ssize(offsets) % towers != 1 % towers) {
    wrong(fmt::format("{} sequences are not pairs", offsets.size() - 1));
  }
}

}  // namespace

struct Scorer::Impl {
  std::shared_ptr<const Model> model;
  const PackedModel& n;
  size_t threads;
  kernels::Arena saved, scratch;
  struct Buffer {
    kernels::AlignedFloats floats;
    std::vector<double> sums;
  };
  std::vector<Buffer> buffers;  // one per thread
  Buffer waiting;               // tiles on their way
  // Of the call: one of the two.
  std::span<const int32_t> tokens;
  std::vector<float> values;  // as the network takes them
  std::vector<int64_t> offsets;

  Impl(std::shared_ptr<const Model> m, int requested)
      : model(std::move(m)),
        n(model->packed()),
        threads(static_cast<size_t>(requested > 0 ? requested : kernels::available_threads())) {
    buffers.resize(threads);
  }

  void parallel(const std::function<void(size_t)>& body) const {
    kernels::parallel_for(static_cast<int>(threads), [&](int t) { body(static_cast<size_t>(t)); });
  }

  size_t sequences() const { return offsets.size() - 1; }

  void encode(int64_t begin, int64_t end, float* x) const {
    for (int64_t t = begin; t < end; ++t, x += n.D()) {
      if (n.info.tokens) {
        n.encode(tokens[static_cast<size_t>(t)], x);
      } else {
        n.encode(values.data() + static_cast<size_t>(t) * n.token_inputs(), x);
      }
    }
  }

  // Features of some sequences at a time: 24 MB of 1,024 rotations.
  std::vector<float> run_features() const {
    constexpr size_t kSequences = 1024;
    const size_t F = n.features->features(), C = n.features->channels;
    std::vector<float> logits(sequences() * n.outputs());
    std::vector<float> features(std::min(sequences(), kSequences) * F);
    std::vector<kernels::BankSequence> some;
    for (size_t begin = 0; begin < sequences(); begin += kSequences) {
      const size_t count = std::min(kSequences, sequences() - begin);
      some.clear();
      for (size_t i = begin; i < begin + count; ++i) {
        some.push_back({values.data() + static_cast<size_t>(offsets[i]) * C,
                        static_cast<size_t>(offsets[i + 1] - offsets[i])});
      }
      kernels::bank_features(n.features->view(), some, features.data(), static_cast<int>(threads));
      n.head.run(*n.simd, features.data(), count, logits.data() + begin * n.outputs());
    }
    return logits;
  }

  std::vector<float> run() {
    if (n.features) return run_features();
    const size_t rows =
        n.info.pooling == Pooling::none ? static_cast<size_t>(offsets.back()) : sequences();
    std::vector<float> pooled(rows * n.D());
    // Tiles that go through all blocks need no memory for the steps. Sequences one after the other
    // keep all threads busy when there are enough of them; else the tiles of a sequence follow each
    // other, as many at a time as there are blocks.
    if (!n.info.bidirectional && sequences() >= threads) {
      through_all_blocks(pooled.data());
    } else if (!n.info.bidirectional && n.steps.size() >= threads) {
      one_behind_the_other(pooled.data());
    } else {
      block_by_block(pooled.data());
    }
    return logits(pooled, rows);
  }

  void through_all_blocks(float* pooled) {
    const size_t D = n.D(), x = kTile * D, work = n.steps[0].scratch(kTile);
    for (Buffer& buffer : buffers) {  // here, where running out of memory can be reported
      buffer.floats.resize(x + work + n.steps.size() * n.state_size());
      buffer.sums.resize(D);
    }
    std::atomic<size_t> next{0};
    parallel([&](size_t t) {
      Buffer& buffer = buffers[t];
      float* at = buffer.floats.data();
      for (size_t i = next++; i < sequences(); i = next++) {
        one_sequence(i, at, at + x, at + x + work, buffer.sums, pooled);
      }
    });
  }

  void one_sequence(size_t i, float* x, float* work, float* states, std::vector<double>& sums,
                    float* pooled) const {
    const size_t S2 = n.state_size();
    std::fill_n(states, n.steps.size() * S2, 0.0f);
    std::fill(sums.begin(), sums.end(), 0.0);
    const int64_t begin = offsets[i], end = offsets[i + 1];
    for (int64_t t = begin; t < end; t += static_cast<int64_t>(kTile)) {
      const int64_t until = std::min(end, t + static_cast<int64_t>(kTile));
      const auto rows = static_cast<size_t>(until - t);
      encode(t, until, x);
      for (size_t b = 0; b < n.steps.size(); ++b) {
        const kernels::StepState state{states + b * S2, t == begin};
        n.steps[b].run(x, rows, &state, 1, work);
      }
      pool(i, t, until, x, sums, pooled);
    }
  }

  // Adds rows [t, until) of the last block to the pooled ones of sequence i; in order.
  void pool(size_t i, int64_t t, int64_t until, const float* x, std::vector<double>& sums,
            float* pooled) const {
    const size_t D = n.D();
    const auto rows = static_cast<size_t>(until - t);
    if (n.info.pooling == Pooling::none) {
      std::copy_n(x, rows * D, pooled + static_cast<size_t>(t) * D);
    } else if (n.info.pooling == Pooling::last) {
      if (until == offsets[i + 1]) std::copy_n(x + (rows - 1) * D, D, pooled + i * D);
    } else {
      for (size_t r = 0; r < rows; ++r) {
        for (size_t d = 0; d < D; ++d) sums[d] += static_cast<double>(x[r * D + d]);
      }
      if (until < offsets[i + 1]) return;
      const double scale = 1.0 / static_cast<double>(until - offsets[i]);
      for (size_t d = 0; d < D; ++d) {
        pooled[i * D + d] = static_cast<float>(sums[d] * scale);
        sums[d] = 0;
      }
    }
  }

  struct Tile {
    size_t sequence;
    int64_t begin, end;
  };

  // The same tiles, and so the same bits, as through_all_blocks().
  void one_behind_the_other(float* pooled) {
    std::vector<Tile> tiles;
    for (size_t i = 0; i < sequences(); ++i) {
      for (int64_t t = offsets[i]; t < offsets[i + 1]; t += static_cast<int64_t>(kTile)) {
        tiles.push_back({i, t, std::min(offsets[i + 1], t + static_cast<int64_t>(kTile))});
      }
    }
    const size_t D = n.D(), S2 = n.state_size(), blocks = n.steps.size(), slots = 2 * threads;
    for (Buffer& buffer : buffers) buffer.floats.resize(n.steps[0].scratch(kTile));
    waiting.floats.resize(slots * kTile * D + blocks * S2);
    waiting.sums.assign(D, 0.0);
    float* const states = waiting.floats.data() + slots * kTile * D;
    run_wave(static_cast<int>(threads), blocks, tiles.size(), slots,
             [&](size_t b, size_t item, size_t thread) {
               const Tile& tile = tiles[item];
               const bool fresh = tile.begin == offsets[tile.sequence];
               float* const x = waiting.floats.data() + item % slots * kTile * D;
               if (b == 0) encode(tile.begin, tile.end, x);
               if (fresh) std::fill_n(states + b * S2, S2, 0.0f);
               const kernels::StepState state{states + b * S2, fresh};
               n.steps[b].run(x, static_cast<size_t>(tile.end - tile.begin), &state, 1,
                              buffers[thread].floats.data());
               if (b + 1 == blocks) {
                 pool(tile.sequence, tile.begin, tile.end, x, waiting.sums, pooled);
               }
             });
  }

  void block_by_block(float* pooled) {
    for (size_t first = 0; first < sequences();) {
      size_t last = first + 1;
      while (last < sequences() && offsets[last + 1] - offsets[first] <= kTogether) ++last;
      std::vector<int64_t> local(offsets.begin() + static_cast<ptrdiff_t>(first),
                                 offsets.begin() + static_cast<ptrdiff_t>(last) + 1);
      const int64_t base = local.front();
      for (int64_t& offset : local) offset -= base;
      const size_t at = n.info.pooling == Pooling::none ? static_cast<size_t>(base) : first;
      some_sequences(local, base, pooled + at * n.D());
      first = last;
    }
  }

  void some_sequences(const std::vector<int64_t>& local, int64_t base, float* pooled) {
    const size_t D = n.D();
    const auto steps = static_cast<size_t>(local.back());
    const kernels::PackedSequences batch{local.data(), local.size() - 1};
    kernels::BlockConfig config = n.config;
    config.threads = static_cast<int>(threads);
    config.balance = true;
    saved.reset();
    float* x[2] = {saved.take<float>(steps * D), saved.take<float>(steps * D)};
    parallel([&](size_t t) {
      const auto part = [&](size_t k) { return static_cast<int64_t>(steps * k / threads); };
      encode(base + part(t), base + part(t + 1), x[0] + static_cast<size_t>(part(t)) * D);
    });
    if (n.channels()) {
      float* const u = saved.take<float>(steps * D);
      for (const kernels::StepBlock& block : n.steps) channel_block(block, batch, x[0], u, x[1]);
      x[n.blocks.size() % 2] = x[0];
    }
    for (size_t b = 0; b < n.blocks.size() && !n.channels(); ++b) {
      kernels::BlockSaved kept = kernels::block_save(config, batch, saved);
      kernels::block_forward(config, batch, n.blocks[b], {.x = x[b % 2]}, {.out = x[(b + 1) % 2]},
                             kept, scratch);
    }
    const float* out = x[n.blocks.size() % 2];
    if (n.info.pooling == Pooling::mean) {
      kernels::pool_mean(batch, out, D, pooled, config.threads);
    } else if (n.info.pooling == Pooling::last) {
      kernels::pool_last(batch, out, D, pooled);
    } else {
      std::copy_n(out, steps * D, pooled);
    }
  }

  // Threads share rows before and behind the channels, and among these groups of them: each walks a
  // sequence to its end, and back if bidirectional.
  void channel_block(const kernels::StepBlock& block, const kernels::PackedSequences& batch,
                     float* x, float* normed, float* y) {
    const kernels::ChannelStepper& channels = *block.channels();
    const size_t D = n.D(), steps = batch.tokens(), tiles = (steps + kTile - 1) / kTile;
    for (Buffer& buffer : buffers) {
      buffer.floats.resize(std::max(block.scratch(kTile), channels.sequence_scratch(kTile)));
    }
    const float* const u = block.norms_input() ? normed : x;
    const auto share = [&](size_t items, const auto& work) {
      std::atomic<size_t> next{0};
      parallel([&](size_t t) {
        for (size_t i = next++; i < items; i = next++) work(i, buffers[t].floats.data());
      });
    };
    const auto rows = [&](size_t tile) { return std::min(kTile, steps - tile * kTile); };
    if (block.norms_input()) {
      share(tiles, [&](size_t i, float*) {
        block.branch_input(x + i * kTile * D, rows(i), normed + i * kTile * D);
      });
    }
    share(batch.count * channels.groups(), [&](size_t i, float* scratch) {
      const size_t sequence = i / channels.groups(), at = batch.begin(sequence) * D;
      channels.sequence(i % channels.groups(), u + at, batch.end(sequence) - batch.begin(sequence),
                        kTile, y + at, scratch);
    });
    share(tiles, [&](size_t i, float* scratch) {
      const size_t at = i * kTile * D;
      block.finish(x + at, u + at, y + at, rows(i), scratch);
    });
  }

  std::vector<float> logits(const std::vector<float>& pooled, size_t rows) const {
    if (n.info.towers == 1) {
      std::vector<float> logits(rows * n.outputs());
      n.head.run(*n.simd, pooled.data(), rows, logits.data());
      return logits;
    }
    const size_t D = n.D(), pairs = rows / 2;
    std::vector<float> joined(pairs * 4 * D), hidden(pairs * D), logits(pairs * n.outputs());
    for (size_t i = 0; i < pairs; ++i) {
      const float *a = pooled.data() + 2 * i * D, *b = a + D;
      float* to = joined.data() + i * 4 * D;
      for (size_t d = 0; d < D; ++d) {
        to[d] = a[d];
        to[D + d] = b[d];
        to[2 * D + d] = a[d] - b[d];
        to[3 * D + d] = a[d] * b[d];
      }
    }
    n.hidden.run(*n.simd, joined.data(), pairs, hidden.data());
    kernels::gelu_forward(hidden.data(), hidden.data(), hidden.size());
    n.head.run(*n.simd, hidden.data(), pairs, logits.data());
    return logits;
  }
};

Scorer::Scorer(std::shared_ptr<const Model> model, int threads) {
  if (model == nullptr) throw std::invalid_argument("scoring needs a model");
  if (threads < 0 || threads > 4096) {
    throw std::invalid_argument(fmt::format("{} threads; choose 1 to 4096, or 0 for all", threads));
  }
  impl_ = std::make_unique<Impl>(std::move(model), threads);
}

Scorer::~Scorer() = default;

std::vector<float> Scorer::score(std::span<const float> values, std::span<const int64_t> offsets) {
  Impl& s = *impl_;
  s.n.check_values(values);
  const size_t C = s.n.inputs();
  check_offsets(offsets, static_cast<int64_t>(values.size() / C), s.n.info.towers);
  if (offsets.size() == 1) return {};
  // As training saw them: cut, reordered, thinned out, scaled.
  const Preprocessing& p = s.n.preprocessing;
  s.values.clear();
  s.offsets.assign(1, 0);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto part = values.subspan(static_cast<size_t>(offsets[i]) * C,
                                     static_cast<size_t>(offsets[i + 1] - offsets[i]) * C);
    const int64_t steps = p.length(std::as_bytes(part));
    if (!p.order.empty() && steps != std::ssize(p.order)) {
      throw std::invalid_argument(
          fmt::format("sequence {} has {} steps; this model reads {} in an order of its own", i,
                      steps, p.order.size()));
    }
    s.values.resize(s.values.size() + static_cast<size_t>(steps) * C);
    p.write_values(std::as_bytes(part),
                   s.values.data() + static_cast<size_t>(s.offsets.back()) * C);
    s.offsets.push_back(s.offsets.back() + steps);
  }
  if (s.n.frontend.used()) {
    std::vector<float> tokens;
    std::vector<int64_t> token_offsets;
    s.n.frontend.sequences(s.values, s.offsets, static_cast<int>(s.threads), tokens, token_offsets);
    s.values.swap(tokens);
    s.offsets.swap(token_offsets);
  }
  return s.run();
}

std::vector<float> Scorer::score_tokens(std::span<const int32_t> tokens,
                                        std::span<const int64_t> offsets) {
  Impl& s = *impl_;
  s.n.check_tokens(tokens);
  check_offsets(offsets, static_cast<int64_t>(tokens.size()), s.n.info.towers);
  if (offsets.size() == 1) return {};
  s.tokens = tokens;
  s.offsets.assign(offsets.begin(), offsets.end());
  return s.run();
}

}  // namespace rotrnn::runtime
