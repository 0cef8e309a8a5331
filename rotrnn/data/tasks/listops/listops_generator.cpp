#include "rotrnn/data/tasks/listops/listops.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "rotrnn/base/random.h"

// The generator of the Long Range Arena.

namespace rotrnn {
namespace {

namespace token = listops_token;

// The generator recurses to max_depth, and one draw may hold max_length tokens.
constexpr int deepest = 64;
constexpr int64_t longest = 1'000'000;

[[noreturn]] void reject_option(const std::string& seen, const std::string& advice) {
  throw std::invalid_argument(fmt::format("ListOps options: {}; {}", seen, advice));
}

// The longest expression that depth and arguments allow, or any number above `enough`.
int64_t longest_expression(const ListOpsOptions& options, int64_t enough) {
  int64_t length = 1;
  for (int depth = 1; depth < options.max_depth && length <= enough; ++depth)
    length = 2 + options.max_args * length;
  return length;
}

}  // namespace

void validate(const ListOpsOptions& options) {
  if (options.min_length < 0)
    reject_option(fmt::format("min_length is {}", options.min_length), "use 0 or more");
  if (options.max_length > longest)
    reject_option(fmt::format("max_length is {}", options.max_length),
                  fmt::format("use {} or less", longest));
  // Neither side may overflow, whatever was given.
  if (options.max_length < 1 || options.min_length >= options.max_length - 1)
    reject_option(fmt::format("no length lies strictly between min_length {} and max_length {}",
                              options.min_length, options.max_length),
                  "raise max_length or lower min_length");
  if (options.max_depth < 1 || options.max_depth > deepest)
    reject_option(fmt::format("max_depth is {}", options.max_depth),
                  fmt::format("use 1 to {}", deepest));
  if (options.max_args < 2)
    reject_option(fmt::format("max_args is {}", options.max_args), "use 2 or more");
  // Written so that a NaN is rejected too.
  if (!(options.operator_probability > 0 && options.operator_probability < 1))
    reject_option(fmt::format("operator_probability is {}", options.operator_probability),
                  "use a number strictly between 0 and 1");
  const int64_t reach = longest_expression(options, options.min_length);
  if (reach <= options.min_length)
    reject_option(fmt::format("max_depth {} and max_args {} give at most {} tokens, min_length "
                              "asks for more than {}",
                              options.max_depth, options.max_args, reach, options.min_length),
                  "raise max_depth or max_args, or lower min_length");
}

namespace {

// Appends a node at `depth`; false as soon as the length bound is broken. The order of the draws is
// that of the published generator: kind, number of arguments, arguments, operator.
bool draw_node(const ListOpsOptions& options, int depth, Random& random,
               std::vector<uint8_t>& tokens) {
  if (static_cast<int64_t>(tokens.size()) + 1 >= options.max_length) return false;
  if (depth >= options.max_depth || random.uniform() > options.operator_probability) {
    tokens.push_back(static_cast<uint8_t>(token::digit + random.below(10)));
    return true;
  }
  const size_t head = tokens.size();
  tokens.push_back(token::min);
  const uint32_t arguments = 2 + random.below(static_cast<uint32_t>(options.max_args - 1));
  for (uint32_t i = 0; i < arguments; ++i)
    if (!draw_node(options, depth + 1, random, tokens)) return false;
  tokens[head] = static_cast<uint8_t>(token::min + random.below(4));
  tokens.push_back(token::close);
  return static_cast<int64_t>(tokens.size()) < options.max_length;
}

// Draw `index` into `tokens`; true if it is kept.
bool draw_into(const ListOpsOptions& options, uint64_t seed, uint64_t index,
               std::vector<uint8_t>& tokens) {
  tokens.clear();
  Random random(seed, RandomSite::listops, {index});
  return draw_node(options, 1, random, tokens) &&
         static_cast<int64_t>(tokens.size()) > options.min_length;
}

uint64_t hash_of(std::span<const uint8_t> bytes) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// What consecutive draws gave, duplicates included.
struct Block {
  ListOpsExamples kept;
  std::vector<uint64_t> hashes;
  std::vector<int64_t> indices;
  int64_t tokens_drawn = 0;
};

// A block holds about this many tokens at most, whatever the lengths asked for. Its size must not
// depend on the number of threads, since the decision to give up is taken between blocks.
int64_t draws_per_block(const ListOpsOptions& options) {
  return std::clamp<int64_t>((int64_t{1} << 22) / options.max_length, 4, 4096);
}

Block draw_block(const ListOpsOptions& options, uint64_t seed, int64_t first, int64_t count) {
  Block block;
  std::vector<uint8_t> tokens;
  for (int64_t index = first; index < first + count; ++index) {
    const bool kept = draw_into(options, seed, static_cast<uint64_t>(index), tokens);
    block.tokens_drawn += static_cast<int64_t>(tokens.size());
    if (!kept) continue;
    block.kept.add(tokens, evaluate_listops(tokens));
    block.hashes.push_back(hash_of(tokens));
    block.indices.push_back(index);
  }
  return block;
}

// Blocks first, first + 1, ..., one after the other from a shared counter by each thread.
std::vector<Block> draw_blocks(const ListOpsOptions& options, uint64_t seed, int64_t first,
                               int64_t count, int threads) {
  const int64_t draws = draws_per_block(options);
  std::vector<Block> blocks(count);
  std::vector<std::exception_ptr> errors(threads);
  std::atomic<int64_t> next{0};
  const auto work = [&](int thread) {
    try {
      for (int64_t b; (b = next++) < count;)
        blocks[b] = draw_block(options, seed, (first + b) * draws, draws);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  return blocks;
}

// The distinct examples so far. Equal hashes are compared in full: a chance collision must not
// drop an example, and a duplicate across sets must not slip through.
class Distinct {
 public:
  bool add(std::span<const uint8_t> expression, int label, uint64_t hash) {
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (std::ranges::equal(examples_.expression(it->second), expression)) return false;
    by_hash_.emplace(hash, examples_.size());
    examples_.add(expression, label);
    return true;
  }

  const ListOpsExamples& examples() const { return examples_; }

 private:
  ListOpsExamples examples_;
  std::unordered_multimap<uint64_t, int64_t> by_hash_;
};

// Ends a search that leads nowhere. After every few million draws (fewer when they are long: the
// time is what counts) the rest must be within reach at the pace seen, or the search is given up.
class Patience {
 public:
  Patience(const ListOpsOptions& options, int64_t wanted) : options_(options), wanted_(wanted) {}

  void check(int64_t draws, int64_t tokens, int64_t found) {
    draws_ += draws;
    window_draws_ += draws;
    window_tokens_ += tokens;
    if (window_draws_ < 2'000'000 && window_tokens_ < 1'000'000'000) return;
    if ((found - found_before_) * 256 < wanted_ - found) give_up(found);
    window_draws_ = window_tokens_ = 0;
    found_before_ = found;
  }

 private:
  [[noreturn]] void give_up(int64_t found) const {
    throw std::runtime_error(fmt::format(
        "ListOps generator: found {} distinct expressions of the {} asked for in {} draws, {} of "
        "them in the last {}; ask for fewer, widen min_length {} .. max_length {}, or raise "
        "max_depth {} or max_args {} or change operator_probability {}",
        found, wanted_, draws_, found - found_before_, window_draws_, options_.min_length,
        options_.max_length, options_.max_depth, options_.max_args, options_.operator_probability));
  }

  const ListOpsOptions& options_;
  int64_t wanted_, found_before_ = 0;
  int64_t draws_ = 0, window_draws_ = 0, window_tokens_ = 0;
};

void check_request(const ListOpsCounts& counts, int threads) {
  constexpr int64_t most = 1'000'000'000;
  for (const auto& [name, count] :
       {std::pair{"train", counts.train}, {"validation", counts.validation}, {"test", counts.test}})
    if (count < 0 || count > most)
      throw std::invalid_argument(
          fmt::format("ListOps generator: {} count is {}; use 0 to {}", name, count, most));
  if (threads < 1)
    throw std::invalid_argument(
        fmt::format("ListOps generator: threads is {}; use 1 or more", threads));
}

ListOpsExamples slice(const ListOpsExamples& all, int64_t first, int64_t count) {
  ListOpsExamples part;
  part.tokens.reserve(all.offsets[first + count] - all.offsets[first]);
  part.offsets.reserve(count + 1);
  part.labels.reserve(count);
  for (int64_t i = first; i < first + count; ++i) part.add(all.expression(i), all.labels[i]);
  return part;
}

}  // namespace

std::optional<std::vector<uint8_t>> draw_listops(const ListOpsOptions& options, uint64_t seed,
                                                 uint64_t index) {
  validate(options);
  std::vector<uint8_t> tokens;
  if (!draw_into(options, seed, index, tokens)) return std::nullopt;
  return tokens;
}

ListOpsSplits generate_listops(const ListOpsOptions& options, uint64_t seed,
                               const ListOpsCounts& counts, int threads) {
  validate(options);
  check_request(counts, threads);
  threads = std::min(threads, 64);
  const int64_t wanted = counts.train + counts.validation + counts.test;
  const int64_t blocks_per_round = int64_t{4} * threads;  // even load, little to throw away

  Distinct distinct;
  Patience patience(options, wanted);
  int64_t draws = 0;
  for (int64_t first = 0; distinct.examples().size() < wanted; first += blocks_per_round) {
    for (const Block& block : draw_blocks(options, seed, first, blocks_per_round, threads)) {
      for (int64_t i = 0; i < block.kept.size() && distinct.examples().size() < wanted; ++i)
        if (distinct.add(block.kept.expression(i), block.kept.labels[i], block.hashes[i]))
          draws = block.indices[i] + 1;
      if (distinct.examples().size() == wanted) break;
      patience.check(draws_per_block(options), block.tokens_drawn, distinct.examples().size());
    }
  }

  const ListOpsExamples& all = distinct.examples();
  return {.train = slice(all, counts.test + counts.validation, counts.train),
          .validation = slice(all, counts.test, counts.validation),
          .test = slice(all, 0, counts.test),
          .draws = draws};
}

}  // namespace rotrnn
