#include "rotrnn/kernels/block/plan.h"

#include <algorithm>
#include <numeric>

namespace rotrnn::kernels {
namespace {

/// Longest first, each to the bin with the least so far; ties to the lowest index.
std::vector<std::vector<size_t>> distribute(const std::vector<size_t>& lengths, size_t bins) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<size_t>> result(bins);
  std::vector<size_t> load(bins, 0);
  for (size_t item : order) {
    const size_t bin =
        static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    result[bin].push_back(item);
    load[bin] += lengths[item];
  }
  return result;
}

size_t longest(const std::vector<std::vector<size_t>>& bins, const std::vector<size_t>& lengths) {
  size_t most = 0;
  for (const auto& bin : bins) {
    size_t load = 0;
    for (size_t item : bin) load += lengths[item];
    most = std::max(most, load);
  }
  return most;
}

/// Groups of whole sequences. A group costs a copy of the weight gradients, a thread needs one: one
/// group per 2,048 tokens, 4 to 32 of them, keeps the copies below 2% of the work.
void plan_groups(Plan& plan, const PackedSequences& sequences, const std::vector<size_t>& lengths) {
  const size_t wish = std::clamp<size_t>(sequences.tokens() / 2048, 4, 32);
  for (auto& group : distribute(lengths, std::min(sequences.count, wish))) {
    std::sort(group.begin(), group.end());
    std::vector<Segment> unit;
    for (size_t i : group) {
      if (lengths[i] == 0) continue;
      unit.push_back({plan.segments++, i, sequences.begin(i), sequences.end(i)});
    }
    plan.units.push_back(std::move(unit));
  }
}

/// Equal stretches of tokens, one per thread, cut where a tile of the sequence ends.
void plan_chunks(Plan& plan, const PackedSequences& sequences, size_t threads) {
  plan.chunked = true;
  plan.units.resize(threads);
  const size_t n = sequences.tokens();
  size_t unit = 0;
  for (size_t i = 0; i < sequences.count; ++i) {
    size_t at = sequences.begin(i);
    const size_t end = sequences.end(i);
    while (at < end) {
      while (unit + 1 < threads && at >= n * (unit + 1) / threads) ++unit;
      const size_t target = unit + 1 < threads ? n * (unit + 1) / threads : n;
      const size_t tiles = (target - at + plan.tile - 1) / plan.tile;
      const size_t stop = std::min(end, at + std::max<size_t>(tiles, 1) * plan.tile);
      plan.units[unit].push_back({plan.segments++, i, at, stop});
      at = stop;
    }
  }
}

}  // namespace

Tile Plan::tile_at(const PackedSequences& sequences, const Segment& segment, size_t k) const {
  const size_t begin = segment.begin + k * tile;
  const size_t rows = std::min(tile, segment.end - begin);
  const size_t start = sequences.begin(segment.sequence);
  return {segment.sequence,
          begin,
          rows,
          first_tile[segment.sequence] + (begin - start) / tile,
          begin == start,
          begin + rows == sequences.end(segment.sequence)};
}

Plan make_plan(const PackedSequences& sequences, size_t tile, int threads, bool balance) {
  Plan plan;
  plan.tile = tile;
  std::vector<size_t> lengths(sequences.count);
  for (size_t i = 0; i < sequences.count; ++i) {
    lengths[i] = sequences.end(i) - sequences.begin(i);
    plan.first_tile.push_back(plan.tiles);
    plan.tiles += (lengths[i] + tile - 1) / tile;
  }
  const size_t workers = static_cast<size_t>(std::max(threads, 1));
  const size_t n = sequences.tokens();
  bool chunk = sequences.count < workers && n > workers * tile;
  if (!chunk && balance && workers > 1 && n > workers * tile) {
    const size_t most = longest(distribute(lengths, workers), lengths);
    chunk = most * workers * 10 > n * 11;
  }
  if (chunk) {
    plan_chunks(plan, sequences, workers);
  } else {
    plan_groups(plan, sequences, lengths);
  }
  std::vector<size_t> loads;
  for (const auto& unit : plan.units) {
    size_t load = 0;
    for (const Segment& s : unit) load += s.end - s.begin;
    loads.push_back(load);
  }
  plan.units_of_thread = distribute(loads, workers);
  plan.segments_of_sequence.resize(sequences.count);
  for (const auto& unit : plan.units) {
    for (const Segment& s : unit) plan.segments_of_sequence[s.sequence].push_back(s);
  }
  return plan;
}

}  // namespace rotrnn::kernels
