#include "rotrnn/data/tasks/listops/listops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "rotrnn/base/random.h"

namespace rotrnn {
namespace {

namespace token = listops_token;

bool is_operator(uint8_t id) {
  return id >= token::min && id <= token::sm;
}
bool is_digit(uint8_t id) {
  return id >= token::digit && id < token::count;
}

// The text of an id that may be out of range, for messages.
std::string shown(uint8_t id) {
  return id < token::count ? listops_vocabulary()[id] : fmt::format("id {}", id);
}

}  // namespace

const std::vector<std::string>& listops_vocabulary() {
  static const std::vector<std::string> words{"<pad>", "<unk>", "<eos>", "[MIN", "[MAX", "[MED",
                                              "[SM",   "]",     "0",     "1",    "2",    "3",
                                              "4",     "5",     "6",     "7",    "8",    "9"};
  return words;
}

std::span<const uint8_t> ListOpsExamples::expression(int64_t i) const {
  return std::span(tokens).subspan(offsets[i], offsets[i + 1] - offsets[i]);
}

void ListOpsExamples::add(std::span<const uint8_t> expression, int label) {
  tokens.insert(tokens.end(), expression.begin(), expression.end());
  offsets.push_back(static_cast<int64_t>(tokens.size()));
  labels.push_back(static_cast<uint8_t>(label));
}

// Options

namespace {

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

// Generator

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

// Evaluator

namespace {

[[noreturn]] void reject_expression(size_t position, const std::string& seen,
                                    const std::string& advice) {
  throw std::invalid_argument(
      fmt::format("ListOps expression, token {}: {}; {}", position + 1, seen, advice));
}

// Lists that are still open. A stack of our own: a hostile line may nest deeper than the call
// stack reaches.
class OpenLists {
 public:
  // Takes the next token and returns the position of the operator that it closes, if any.
  // `arguments()` is then the number of arguments of that list.
  std::optional<size_t> take(uint8_t id, size_t position) {
    if (position > 0 && heads_.empty())
      reject_expression(position, fmt::format("\"{}\" after the end", shown(id)),
                        "keep one expression only");
    if (is_operator(id)) {
      heads_.push_back({position, 0});
      return std::nullopt;
    }
    if (is_digit(id)) {
      count_argument();
      return std::nullopt;
    }
    if (id != token::close)
      reject_expression(position, fmt::format("\"{}\"", shown(id)),
                        "use operators, digits and ] only");
    return close(position);
  }

  size_t arguments() const { return arguments_; }

  void finish(size_t length) const {
    if (length == 0) reject_expression(0, "nothing", "give a digit or a list");
    if (!heads_.empty())
      reject_expression(length, fmt::format("the end, with {} list(s) open", heads_.size()),
                        "close every list with ]");
  }

 private:
  struct Head {
    size_t position, arguments;
  };

  size_t close(size_t position) {
    if (heads_.empty()) reject_expression(position, "\"]\" with no list open", "remove it");
    const Head head = heads_.back();
    heads_.pop_back();
    if (head.arguments == 0)
      reject_expression(position, "the end of an empty list", "give it at least one argument");
    arguments_ = head.arguments;
    count_argument();
    return head.position;
  }

  void count_argument() {
    if (!heads_.empty()) ++heads_.back().arguments;
  }

  std::vector<Head> heads_;
  size_t arguments_ = 0;
};

// The upper of the two middle values is at sorted index n / 2, the lower at (n - 1) / 2; a mean of
// digits is never negative, so integer division truncates as int(numpy.median(...)) does.
int median(std::span<const uint8_t> values) {
  std::array<size_t, 10> counts{};
  for (uint8_t value : values) ++counts[value];
  const auto at = [&](size_t index) {
    int value = 0;
    for (size_t below = counts[0]; below <= index; below += counts[++value]) {
    }
    return value;
  };
  return (at((values.size() - 1) / 2) + at(values.size() / 2)) / 2;
}

int operate(uint8_t op, std::span<const uint8_t> values) {
  switch (op) {
    case token::min:
      return std::ranges::min(values);
    case token::max:
      return std::ranges::max(values);
    case token::med:
      return median(values);
    default:
      return static_cast<int>(std::accumulate(values.begin(), values.end(), uint64_t{0}) % 10);
  }
}

}  // namespace

int evaluate_listops(std::span<const uint8_t> expression) {
  OpenLists lists;
  std::vector<uint8_t> values;  // arguments of all open lists, the innermost list's last
  for (size_t i = 0; i < expression.size(); ++i) {
    const auto head = lists.take(expression[i], i);
    if (is_digit(expression[i])) values.push_back(expression[i] - token::digit);
    if (!head) continue;
    const size_t first = values.size() - lists.arguments();
    const int value = operate(expression[*head], std::span(values).subspan(first));
    values.resize(first);
    values.push_back(static_cast<uint8_t>(value));
  }
  lists.finish(expression.size());
  return values.front();
}

// Text

namespace {

bool separates(char c) {
  return c == '(' || c == ')' || c == ' ' || (c >= '\t' && c <= '\r');
}

uint8_t id_of(std::string_view word) {
  if (word.size() == 1 && word[0] >= '0' && word[0] <= '9')
    return static_cast<uint8_t>(token::digit + (word[0] - '0'));
  for (uint8_t id = token::min; id <= token::close; ++id)
    if (word == listops_vocabulary()[id]) return id;
  return token::unk;
}

// A word that came from a file: cut to a length for one line, bytes outside ASCII masked.
std::string printable(std::string_view word) {
  std::string text(word.substr(0, 32));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return word.size() > 32 ? text + "..." : text;
}

[[noreturn]] void reject_word(std::string_view text, std::string_view word) {
  throw std::invalid_argument(
      fmt::format("ListOps text, byte {}: unknown word \"{}\"; use [MIN [MAX [MED [SM ] and 0 to 9",
                  word.data() - text.data() + 1, printable(word)));
}

}  // namespace

std::vector<uint8_t> tokenize_listops(std::string_view text, UnknownWords unknown) {
  std::vector<uint8_t> tokens;
  tokens.reserve(text.size() / 4);
  for (size_t i = 0; i < text.size();) {
    if (separates(text[i])) {
      ++i;
      continue;
    }
    const size_t first = i++;
    if (text[first] != ']')
      while (i < text.size() && !separates(text[i]) && text[i] != ']') ++i;
    const std::string_view word = text.substr(first, i - first);
    tokens.push_back(id_of(word));
    if (tokens.back() == token::unk && unknown == UnknownWords::reject) reject_word(text, word);
  }
  return tokens;
}

std::string listops_text(std::span<const uint8_t> tokens) {
  std::string text;
  for (uint8_t id : tokens) {
    if (!text.empty()) text += ' ';
    text += shown(id);
  }
  return text;
}

std::string listops_source(std::span<const uint8_t> expression) {
  // An operator opens one parenthesis per argument and one for its bracket, all before itself, so
  // its arguments are counted first.
  std::vector<size_t> arguments(expression.size());
  OpenLists lists;
  for (size_t i = 0; i < expression.size(); ++i)
    if (const auto head = lists.take(expression[i], i)) arguments[*head] = lists.arguments();
  lists.finish(expression.size());

  std::string text;
  text.reserve(8 * expression.size());  // a digit takes 6 bytes, an operator and its bracket 15
  for (size_t i = 0; i < expression.size(); ++i) {
    const uint8_t id = expression[i];
    if (i > 0) text += ' ';
    if (is_operator(id))
      for (size_t open = 0; open <= arguments[i]; ++open) text += "( ";
    text += listops_vocabulary()[id];
    if (id == token::close) text += " )";  // pairs the list with its bracket
    const bool is_argument = !is_operator(id) && i + 1 < expression.size();
    if (is_argument) text += " )";  // pairs the list so far with this argument
  }
  return text;
}

}  // namespace rotrnn
