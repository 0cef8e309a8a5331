#include "rotrnn/distributed/shard.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

namespace rotrnn {

std::vector<int64_t> take_shard(std::span<const int64_t> lengths, const Shard& shard) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  if (shard.size == 1) return order;
  // The longest first, each to the rank with the least so far: at most a third above the best there
  // is (Graham 1969), and far nearer with many sequences.
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  using Load = std::tuple<int64_t, int64_t, int>;  // tokens, sequences, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int rank = 0; rank < shard.size; ++rank) loads.emplace(0, 0, rank);
  std::vector<int64_t> taken;
  for (const int64_t i : order) {
    const auto [tokens, sequences, rank] = loads.top();
    loads.pop();
    loads.emplace(tokens + lengths[i], sequences + 1, rank);
    if (rank == shard.rank) taken.push_back(i);
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

}  // namespace rotrnn
