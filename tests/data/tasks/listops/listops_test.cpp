#include "rotrnn/data/tasks/listops/listops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>

namespace rotrnn {
namespace {

namespace token = listops_token;

// The message of the exception that `action` throws, or nothing.
template <class Error, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

int value_of(std::string_view text) {
  return evaluate_listops(tokenize_listops(text, UnknownWords::reject));
}

// ---- Vocabulary and text ------------------------------------------------------------------------

TEST(ListOpsText, VocabularyHasThreeSpecialsAndFifteenTokens) {
  const auto& words = listops_vocabulary();
  ASSERT_EQ(words.size(), 18u);
  EXPECT_EQ(words[token::sm], "[SM");
  EXPECT_EQ(words[token::close], "]");
  EXPECT_EQ(words[token::digit + 9], "9");
  EXPECT_EQ(std::set(words.begin(), words.end()).size(), 18u);
}

TEST(ListOpsText, ReadsPlainAndBinaryFormsAlike) {
  const std::vector<uint8_t> expected{token::sm, token::digit + 6, token::digit + 5, token::close};
  EXPECT_EQ(tokenize_listops("[SM 6 5 ]"), expected);
  EXPECT_EQ(tokenize_listops("( ( ( [SM 6 ) 5 ) ] )"), expected);
  EXPECT_EQ(tokenize_listops("\t(([SM 6)\r\n5)] "), expected);
  EXPECT_EQ(tokenize_listops("[SM 6 5]"), expected);
  EXPECT_TRUE(tokenize_listops("").empty());
  EXPECT_TRUE(tokenize_listops(" ( ) \n").empty());
}

TEST(ListOpsText, WritesBothForms) {
  const auto tokens = tokenize_listops("[MAX 1 [SM 6 5 ] 2 ]");
  EXPECT_EQ(listops_text(tokens), "[MAX 1 [SM 6 5 ] 2 ]");
  EXPECT_EQ(listops_source(tokens), "( ( ( ( [MAX 1 ) ( ( ( [SM 6 ) 5 ) ] ) ) 2 ) ] )");
  EXPECT_EQ(listops_source(tokenize_listops("7")), "7");
  EXPECT_EQ(listops_text({}), "");
}

TEST(ListOpsText, UnknownWordsBecomeUnkOrAreNamed) {
  for (const char* word : {"10", "MIN", "[min", "[FIRST", "x", "[", "-1", "[MIN2"}) {
    const std::string text = std::string("[MIN 1 ") + word + " ]";
    EXPECT_EQ(tokenize_listops(text)[2], token::unk) << word;
    const auto message =
        message_of<std::invalid_argument>([&] { tokenize_listops(text, UnknownWords::reject); });
    EXPECT_TRUE(contains(message, std::string("byte 8: unknown word \"") + word + "\"; use"));
  }
  const auto message = message_of<std::invalid_argument>(
      [] { tokenize_listops("\x01\xff" + std::string(1000, 'a'), UnknownWords::reject); });
  EXPECT_TRUE(contains(message, "\"??aaa"));
  EXPECT_LT(message.size(), 150u);
}

// ---- Evaluator ----------------------------------------------------------------------------------

TEST(ListOpsEvaluate, HandComputedCases) {
  const std::pair<const char*, int> cases[] = {
      {"0", 0},
      {"9", 9},
      {"[MIN 4 2 7 ]", 2},
      {"[MAX 4 2 7 ]", 7},
      {"[MED 4 2 7 ]", 4},
      {"[MED 9 9 0 ]", 9},
      {"[MED 1 2 ]", 1},          // 1.5
      {"[MED 8 9 ]", 8},          // 8.5
      {"[MED 0 9 3 4 ]", 3},      // 3.5
      {"[MED 0 0 9 9 ]", 4},      // 4.5
      {"[MED 2 8 2 8 ]", 5},      // the middle two differ by more than 1
      {"[MED 5 1 5 1 9 5 ]", 5},  // 1 1 5 5 5 9
      {"[SM 6 5 ]", 1},
      {"[SM 9 9 9 9 9 9 9 9 9 9 ]", 0},
      {"[SM 9 9 9 9 9 9 9 9 9 ]", 1},
      {"[MIN 3 ]", 3},
      {"[MED 3 ]", 3},
      {"[MAX 2 9 [MIN 4 7 ] 0 ]", 9},
      {"[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]", 5},  // of the LRA paper, its figure 1
      {"[SM [SM 9 9 ] [MED [MAX 1 3 ] 5 ] [MIN 8 [SM 7 7 7 ] ] ]", 3},  // 8 + 4 + 1
      {"[MIN [MAX [MED [SM 5 6 ] 4 ] 0 ] 9 ]", 2},
  };
  for (const auto& [text, value] : cases) EXPECT_EQ(value_of(text), value) << text;
}

TEST(ListOpsEvaluate, ManyArgumentsDoNotOverflow) {
  std::vector<uint8_t> expression(3'000'002, token::digit + 9);
  expression.back() = token::close;
  expression.front() = token::sm;
  EXPECT_EQ(evaluate_listops(expression), 0);
  expression.front() = token::med;
  EXPECT_EQ(evaluate_listops(expression), 9);
}

TEST(ListOpsEvaluate, MalformedExpressionsNameThePosition) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "token 1: nothing; give"},
      {"]", "token 1: \"]\" with no list open; remove"},
      {"1 2", "token 2: \"2\" after the end; keep one"},
      {"[MIN 1 2 ] ]", "token 5: \"]\" after the end; keep one"},
      {"[MIN 1 2 ] [MAX 1 ]", "token 5: \"[MAX\" after the end; keep one"},
      {"[MIN 1 2", "token 4: the end, with 1 list(s) open; close"},
      {"[MIN", "token 2: the end, with 1 list(s) open; close"},
      {"[MIN [MAX 1", "token 4: the end, with 2 list(s) open; close"},
      {"[MIN ]", "token 2: the end of an empty list; give it"},
      {"[MAX 1 [MIN ] ]", "token 4: the end of an empty list; give it"},
      {"[MIN 1 x ]", "token 3: \"<unk>\"; use"},
  };
  for (const auto& [text, expected] : cases) {
    const auto tokens = tokenize_listops(text);
    EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { evaluate_listops(tokens); }),
                         std::string("ListOps expression, ") + expected))
        << text;
    EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { listops_source(tokens); }),
                         std::string("ListOps expression, ") + expected))
        << text;
  }
  for (uint8_t id : {token::pad, token::eos, token::count, uint8_t{255}})
    EXPECT_THROW(evaluate_listops(std::array{token::min, id, token::close}), std::invalid_argument);
}

TEST(ListOpsEvaluate, NestingIsNotBoundByTheCallStack) {
  const size_t levels = 1'000'000;
  std::vector<uint8_t> deep(levels, token::max);
  deep.push_back(token::digit + 5);
  EXPECT_THROW(evaluate_listops(deep), std::invalid_argument);
  EXPECT_THROW(listops_source(deep), std::invalid_argument);
  deep.insert(deep.end(), levels, token::close);
  EXPECT_EQ(evaluate_listops(deep), 5);
  EXPECT_EQ(tokenize_listops(listops_source(deep)), deep);
  EXPECT_EQ(tokenize_listops(listops_text(deep)), deep);
}

// ---- Against a second, naive implementation -----------------------------------------------------

// A digit, or an operator 0 to 3 (MIN MAX MED SM) over children.
struct Tree {
  int digit = 0, op = 0;
  std::vector<Tree> children;
};

Tree random_tree(std::mt19937& random, int depth) {
  Tree tree{static_cast<int>(random() % 10), static_cast<int>(random() % 4), {}};
  if (depth > 0 && random() % 2)
    for (size_t n = 1 + random() % 7; n > 0; --n)
      tree.children.push_back(random_tree(random, depth - 1));
  return tree;
}

int naive_value(const Tree& tree) {
  if (tree.children.empty()) return tree.digit;
  std::vector<int> values;
  for (const Tree& child : tree.children) values.push_back(naive_value(child));
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  if (tree.op == 0) return values.front();
  if (tree.op == 1) return values.back();
  if (tree.op == 2)
    return n % 2 ? values[n / 2] : static_cast<int>(0.5 * (values[n / 2 - 1] + values[n / 2]));
  int sum = 0;
  for (int value : values) sum += value;
  return sum % 10;
}

// As in the published generator: t = (op, v0), (t, v1), ..., (t, ]), a pair being "( left right )".
std::string naive_source(const Tree& tree) {
  if (tree.children.empty()) return std::to_string(tree.digit);
  static const char* const names[] = {"[MIN", "[MAX", "[MED", "[SM"};
  std::string text = names[tree.op];
  for (const Tree& child : tree.children) text = "( " + text + " " + naive_source(child) + " )";
  return "( " + text + " ] )";
}

TEST(ListOpsOracle, RandomTreesAgree) {
  std::mt19937 random(7);
  std::set<int> seen;
  size_t longest = 0;
  for (int i = 0; i < 3000; ++i) {
    const Tree tree = random_tree(random, 5);
    const std::string source = naive_source(tree);
    const auto tokens = tokenize_listops(source, UnknownWords::reject);
    ASSERT_EQ(evaluate_listops(tokens), naive_value(tree)) << source;
    ASSERT_EQ(listops_source(tokens), source);
    ASSERT_EQ(tokenize_listops(listops_text(tokens)), tokens);
    seen.insert(naive_value(tree));
    longest = std::max(longest, tokens.size());
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_GT(longest, 100u);
}

// ---- Generator: what it draws -------------------------------------------------------------------

// Counts within 5 standard deviations of a binomial: 6e-7 of chance each, for a fixed seed.
void expect_share(int64_t hits, int64_t trials, double share, const std::string& what) {
  const double deviation = std::sqrt(share * (1 - share) * static_cast<double>(trials));
  EXPECT_NEAR(static_cast<double>(hits), share * static_cast<double>(trials), 5 * deviation)
      << what << " of " << trials;
}

TEST(ListOpsGenerator, NodesFollowThePublishedProbabilities) {
  // No draw can reach this max_length, so nothing is selected and shares are those of the
  // procedure.
  const ListOpsOptions options{0, 1'000'000, 5, 6, 0.3};
  std::array<int64_t, token::count> ids{};
  std::array<int64_t, 7> arguments{};
  int64_t inner = 0, inner_operators = 0;
  for (uint64_t index = 0; index < 20'000; ++index) {
    std::vector<int> open;  // arguments so far, per open list
    const auto draw = draw_listops(options, 3, index);
    for (uint8_t id : draw.value()) {
      ++ids[id];
      if (id == token::close) {
        ASSERT_LE(open.back(), 6);
        ++arguments[open.back()];
        open.pop_back();
        continue;
      }
      if (!open.empty()) ++open.back();
      const size_t depth = open.size() + 1;
      const bool is_operator = id < token::close;
      ASSERT_LE(depth, is_operator ? 4u : 5u);
      inner += depth < 5;
      inner_operators += is_operator;
      if (is_operator) open.push_back(0);
    }
  }
  expect_share(inner_operators, inner, 0.3, "operators");
  for (int n = 2; n <= 6; ++n) expect_share(arguments[n], inner_operators, 1.0 / 5, "arguments");
  for (uint8_t id = token::min; id <= token::sm; ++id)
    expect_share(ids[id], inner_operators, 1.0 / 4, listops_vocabulary()[id]);
  int64_t digits = 0;
  for (int d = 0; d < 10; ++d) digits += ids[token::digit + d];
  for (int d = 0; d < 10; ++d) expect_share(ids[token::digit + d], digits, 0.1, std::to_string(d));
}

// The exact probability of every length below max_length: coefficients of the generating function
// F_d(x) = (1 - p) x + p x^2 mean_{k = 2..K} F_{d+1}(x)^k, with F = x at the deepest level.
std::vector<double> exact_lengths(const ListOpsOptions& options) {
  const size_t size = options.max_length;
  const auto times = [&](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> product(size);
    for (size_t i = 0; i < size; ++i)
      for (size_t j = 0; a[i] != 0 && i + j < size; ++j) product[i + j] += a[i] * b[j];
    return product;
  };
  std::vector<double> f(size);
  f[1] = 1;
  for (int depth = options.max_depth - 1; depth >= 1; --depth) {
    std::vector<double> sum(size), power = f;
    for (int k = 2; k <= options.max_args; ++k) {
      power = times(f, power);
      for (size_t i = 0; i < size; ++i) sum[i] += power[i] / (options.max_args - 1);
    }
    f.assign(size, 0);
    f[1] = 1 - options.operator_probability;
    for (size_t i = 2; i < size; ++i) f[i] += options.operator_probability * sum[i - 2];
  }
  return f;
}

TEST(ListOpsGenerator, ArenaStatisticsMatchTheExactOnes) {
  const ListOpsOptions options;
  const auto exact = exact_lengths(options);
  double acceptance = 0, first = 0, second = 0;
  for (int64_t n = options.min_length + 1; n < options.max_length; ++n) {
    acceptance += exact[n];
    first += static_cast<double>(n) * exact[n];
    second += static_cast<double>(n * n) * exact[n];
  }
  const double mean = first / acceptance, variance = second / acceptance - mean * mean;
  EXPECT_NEAR(acceptance, 0.08, 0.005);
  EXPECT_NEAR(mean, 1050, 20);

  const ListOpsSplits splits = generate_listops(options, 11, {6000, 0, 0}, 2);
  const ListOpsExamples& all = splits.train;
  expect_share(all.size(), splits.draws, acceptance, "kept");
  EXPECT_NEAR(static_cast<double>(all.tokens.size()) / 6000, mean, 5 * std::sqrt(variance / 6000));

  std::array<int64_t, 10> labels{};
  for (int64_t i = 0; i < all.size(); ++i) {
    const auto expression = all.expression(i);
    ASSERT_GT(static_cast<int64_t>(expression.size()), options.min_length);
    ASSERT_LT(static_cast<int64_t>(expression.size()), options.max_length);
    ASSERT_EQ(evaluate_listops(expression), all.labels[i]);
    ++labels[all.labels[i]];
  }
  // 0.5% is the standard deviation of a share of 17% in 6,000; "about 17%" is known to 0.5%.
  for (int label : {0, 9}) EXPECT_NEAR(labels[label] / 6000.0, 0.17, 0.02) << label;
  for (int label = 1; label < 9; ++label) EXPECT_NEAR(labels[label] / 6000.0, 0.083, 0.02) << label;
}

TEST(ListOpsGenerator, EveryAllowedLengthAndNoOtherComes) {
  std::set<size_t> lengths;
  for (uint64_t index = 0; index < 5000; ++index)
    if (const auto draw = draw_listops({3, 7, 3, 4, 0.5}, 1, index)) lengths.insert(draw->size());
  EXPECT_EQ(lengths, (std::set<size_t>{4, 5, 6}));
}

// ---- Generator: the three sets ------------------------------------------------------------------

const ListOpsOptions short_lists{4, 40, 4, 5, 0.4};

std::set<std::string> texts_of(const ListOpsExamples& examples) {
  std::set<std::string> texts;
  for (int64_t i = 0; i < examples.size(); ++i) texts.insert(listops_text(examples.expression(i)));
  return texts;
}

TEST(ListOpsGenerator, SetsAreTheFirstDistinctDraws) {
  const ListOpsSplits splits = generate_listops(short_lists, 5, {3000, 200, 100});
  std::set<std::string> seen;
  uint64_t index = 0;
  for (const ListOpsExamples* set : {&splits.test, &splits.validation, &splits.train})
    for (int64_t i = 0; i < set->size();) {
      const auto draw = draw_listops(short_lists, 5, index++);
      if (!draw || !seen.insert(listops_text(*draw)).second) continue;
      ASSERT_TRUE(std::ranges::equal(*draw, set->expression(i))) << "draw " << index - 1;
      ++i;
    }
  EXPECT_EQ(splits.draws, static_cast<int64_t>(index));
}

TEST(ListOpsGenerator, NoDuplicatesWithinOrAcrossSets) {
  // Lists this short repeat all the time: 3,300 examples of some 10,000 that exist.
  const ListOpsOptions options{3, 7, 3, 4, 0.5};
  const ListOpsSplits splits = generate_listops(options, 5, {3000, 200, 100});
  std::set<std::string> all = texts_of(splits.train);
  all.merge(texts_of(splits.validation));
  all.merge(texts_of(splits.test));
  EXPECT_EQ(splits.train.size(), 3000);
  EXPECT_EQ(splits.validation.size(), 200);
  EXPECT_EQ(splits.test.size(), 100);
  EXPECT_EQ(all.size(), 3300u);
  int64_t kept = 0;
  for (int64_t i = 0; i < splits.draws; ++i) kept += draw_listops(options, 5, i).has_value();
  EXPECT_GT(kept, 3400) << "no duplicate was met, so this test shows nothing";
}

TEST(ListOpsGenerator, SameSetsForAnyNumberOfThreads) {
  const ListOpsCounts counts{700, 30, 20};
  const ListOpsSplits one = generate_listops({}, 9, counts, 1);
  for (int threads : {2, 3, 7}) {
    const ListOpsSplits many = generate_listops({}, 9, counts, threads);
    EXPECT_EQ(one.train, many.train);
    EXPECT_EQ(one.validation, many.validation);
    EXPECT_EQ(one.test, many.test);
    EXPECT_EQ(one.draws, many.draws);
  }
}

TEST(ListOpsGenerator, DifferentSeedsGiveDifferentExamples) {
  const auto a = texts_of(generate_listops({}, 1, {100, 0, 0}).train);
  for (uint64_t seed : {uint64_t{2}, (uint64_t{1} << 32) + 1, ~uint64_t{0}})
    for (const std::string& text : texts_of(generate_listops({}, seed, {100, 0, 0}).train))
      EXPECT_FALSE(a.contains(text)) << seed;
}

TEST(ListOpsGenerator, MoreTrainingExamplesLeaveTheOtherSets) {
  const ListOpsSplits few = generate_listops(short_lists, 5, {10, 50, 50});
  const ListOpsSplits many = generate_listops(short_lists, 5, {1000, 50, 50});
  EXPECT_EQ(few.validation, many.validation);
  EXPECT_EQ(few.test, many.test);
  EXPECT_TRUE(std::ranges::equal(few.train.labels, std::span(many.train.labels).first(10)));
}

TEST(ListOpsGenerator, NothingAskedForNothingDone) {
  const ListOpsSplits none = generate_listops({}, 1, {0, 0, 0}, 2);
  EXPECT_EQ(none.train, ListOpsExamples{});
  EXPECT_EQ(none.draws, 0);
}

// ---- Generator: what it refuses -----------------------------------------------------------------

TEST(ListOpsOptionsTest, ImpossibleValuesAreRejected) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const int64_t least = std::numeric_limits<int64_t>::min();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<ListOpsOptions, const char*> cases[] = {
      {{.min_length = -1}, "min_length is -1; use 0"},
      {{.min_length = 1999}, "strictly between min_length 1999 and max_length 2000; raise"},
      {{.min_length = 3000}, "strictly between min_length 3000 and max_length 2000; raise"},
      {{.min_length = most}, "strictly between"},
      {{.max_length = least}, "strictly between"},
      {{.max_length = most}, "max_length is 9223372036854775807; use 1000000 or less"},
      {{.max_depth = 0}, "max_depth is 0; use 1 to 64"},
      {{.max_depth = 65}, "max_depth is 65; use 1 to 64"},
      {{.max_args = 1}, "max_args is 1; use 2"},
      {{.operator_probability = 0}, "operator_probability is 0; use"},
      {{.operator_probability = 1}, "operator_probability is 1; use"},
      {{.operator_probability = nan}, "operator_probability is nan; use"},
      {{122, 2000, 3, 10, 0.5},
       "give at most 122 tokens, min_length asks for more than 122; raise"},
      {{.max_depth = 3}, "max_depth 3 and max_args 10 give at most 122 tokens, min_length asks"},
  };
  for (const auto& [options, expected] : cases) {
    const auto message = message_of<std::invalid_argument>([&] { validate(options); });
    EXPECT_TRUE(contains(message, std::string("ListOps options: "))) << expected;
    EXPECT_TRUE(contains(message, expected));
    EXPECT_THROW(generate_listops(options, 1, {1, 0, 0}), std::invalid_argument) << expected;
    EXPECT_THROW(draw_listops(options, 1, 0), std::invalid_argument) << expected;
  }
}

TEST(ListOpsOptionsTest, ExtremesThatArePossibleAreAccepted) {
  EXPECT_NO_THROW(validate({}));
  EXPECT_NO_THROW(validate({.min_length = 1998}));
  EXPECT_NO_THROW(validate({0, 2, 1, 2, 0.5}));
  EXPECT_NO_THROW(validate({121, 123, 3, 10, 0.5}));  // 122 tokens are the most
  // A supercritical process: every draw is cut at max_length, none recurses or grows without end.
  const ListOpsOptions wild{0, 1000, 64, std::numeric_limits<int>::max(), 0.99};
  for (uint64_t index = 0; index < 1000; ++index) {
    const auto draw = draw_listops(wild, 1, index);
    EXPECT_TRUE(!draw || draw->size() < 1000);
  }
}

TEST(ListOpsGenerator, WrongRequestsAreRejected) {
  EXPECT_TRUE(contains(message_of<std::invalid_argument>([] {
                         generate_listops({}, 1, {1, -1, 1});
                       }),
                       "validation count is -1; use 0"));
  EXPECT_THROW(generate_listops({}, 1, {int64_t{1} << 62, int64_t{1} << 62, int64_t{1} << 62}),
               std::invalid_argument);
  EXPECT_TRUE(contains(message_of<std::invalid_argument>([] {
                         generate_listops({}, 1, {1, 1, 1}, 0);
                       }),
                       "threads is 0; use 1"));
}

TEST(ListOpsGenerator, GivesUpWhenThereAreNoMoreExamples) {
  const ListOpsOptions digits_only{0, 2, 1, 2, 0.5};
  EXPECT_EQ(generate_listops(digits_only, 1, {8, 1, 1}).train.size(), 8);
  const auto message = [&](int threads) {
    return message_of<std::runtime_error>([&] {
      generate_listops(digits_only, 1, {9, 1, 1}, threads);
    });
  };
  const std::string one = message(1);
  EXPECT_TRUE(contains(one, "found 10 distinct expressions of the 11 asked for"));
  EXPECT_TRUE(contains(one, "ask for fewer"));
  EXPECT_TRUE(contains(one, "max_depth 1"));
  EXPECT_EQ(message(3), one);
  // Lengths 2 and 3 do not exist.
  EXPECT_TRUE(contains(message_of<std::runtime_error>([] {
                         generate_listops({1, 4, 5, 5, 0.25}, 1, {1, 0, 0}, 2);
                       }),
                       "found 0 distinct expressions of the 1 asked for"));
}

}  // namespace
}  // namespace rotrnn
