#include "rotrnn/data/tasks/listops/listops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

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

// Values

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
