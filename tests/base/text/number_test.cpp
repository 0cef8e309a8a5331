#include "rotrnn/base/text/number.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace rotrnn {
namespace {

TEST(Number, WholeTextsOnly) {
  EXPECT_EQ(to_number("12"), 12.0);
  EXPECT_EQ(to_number(" \t-0.5\r"), -0.5);
  EXPECT_EQ(to_number("+3e2"), 300.0);
  EXPECT_EQ(to_number(".25"), 0.25);
  EXPECT_EQ(to_number("5."), 5.0);
  EXPECT_EQ(to_number("1e-400"), 0.0);
  EXPECT_EQ(to_number("0.1"), 0.1);
  for (const char* bad :
       {"",     "  ",       "x",     "1x",     "1 2",  "1,5",    "nan",     "NaN", "-nan", "inf",
        "-inf", "Infinity", "1e400", "-1e999", "0x10", "+-1",    "--1",     "+",   "-",    ".",
        "e5",   "1e",       "?",     "1_000",  "+inf", "1e400x", "1e-400x", "٣"}) {
    EXPECT_FALSE(to_number(bad)) << bad;
    EXPECT_FALSE(to_float(bad)) << bad;
  }
}

TEST(Number, SinglePrecisionHasItsRange) {
  EXPECT_EQ(to_float("0.1"), 0.1f);
  EXPECT_EQ(to_float("3.4e38"), 3.4e38f);
  EXPECT_FALSE(to_float("3.5e38"));
  EXPECT_TRUE(to_number("3.5e38"));
}

TEST(Number, MessagesSayWhatToDo) {
  EXPECT_EQ(not_a_number_message("abc"), "\"abc\" is not a number");
  EXPECT_EQ(not_a_number_message(" "),
            "empty where a number belongs; fill in missing values first");
  for (const char* missing : {"?", "NaN", "nan", "NA", "n/a", "null"}) {
    EXPECT_EQ(not_a_number_message(missing),
              fmt::format("\"{}\" where a number belongs; fill in missing values first", missing));
  }
  EXPECT_EQ(not_a_number_message("3,14"), "\"3,14\" has a decimal comma; write a decimal point");
  EXPECT_EQ(not_a_number_message("1,2,3"), "\"1,2,3\" is not a number");
  for (const char* large : {"1e999", "-1e39", "inf"}) {
    EXPECT_EQ(
        not_a_number_message(large),
        fmt::format("\"{}\" is out of the range of single precision; scale the values", large));
  }
}

TEST(Number, DigitsAreGroupedByThrees) {
  for (const auto& [number, text] :
       std::initializer_list<std::pair<int64_t, const char*>>{{0, "0"},
                                                              {999, "999"},
                                                              {1000, "1,000"},
                                                              {-999, "-999"},
                                                              {-123456, "-123,456"},
                                                              {12345678, "12,345,678"}}) {
    EXPECT_EQ(grouped(number), text);
  }
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(0, "run"), "0 runs");
  EXPECT_EQ(counted(2000, "run"), "2,000 runs");
}

}  // namespace
}  // namespace rotrnn
