#include "rotrnn/io/formats/ts.h"

#include <gtest/gtest.h>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;

struct Read {
  TsHeader header;
  std::vector<TsSeries> series;
};

Read read(const std::string& content) {
  TsReader reader(content, "f.ts");
  Read out;
  for (TsSeries series; reader.next(series);) out.series.push_back(series);
  out.header = reader.header();
  return out;
}

std::string error_of(const std::string& content) {
  return test::message_of<std::runtime_error>([&] { read(content); });
}

// As the archive has it (BasicMotions).
constexpr const char* kMotions =
    "#The data was generated as part of a student project.\r\n"
    "#\r\n"
    "@problemName BasicMotions\r\n"
    "@timeStamps false\r\n"
    "@missing false\r\n"
    "@univariate false\r\n"
    "@dimensions 2\r\n"
    "@equalLength true\r\n"
    "@seriesLength 3\r\n"
    "@classLabel true Standing Running Walking Badminton\r\n"
    "@data\r\n"
    "0.079106,0.394032,-0.867:-0.394,1e-2,5:Standing\r\n"
    "1,2,3:4,5,6:Walking\r\n";

TEST(Ts, ManyChannels) {
  const Read out = read(kMotions);
  EXPECT_EQ(out.header.problem, "BasicMotions");
  EXPECT_EQ(out.header.dimensions, 2);
  EXPECT_EQ(out.header.classes,
            (std::vector<std::string>{"Standing", "Running", "Walking", "Badminton"}));
  ASSERT_EQ(out.series.size(), 2u);
  EXPECT_EQ(out.series[0].values,
            (std::vector<float>{0.079106f, -0.394f, 0.394032f, 0.01f, -0.867f, 5}));
  EXPECT_EQ(out.series[0].label, 0);
  EXPECT_EQ(out.series[1].values, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(out.series[1].length, 3);
  EXPECT_EQ(out.series[1].label, 2);
}

TEST(Ts, OneChannelOfAnyLength) {
  const Read out = read(
      "@problemName Ragged\n@timestamps false\n@univariate true\n@equalLength false\n"
      "@CLASSLABEL true 1 -1\n\n@data\n1,2,3:1\n# between\n\n 4 : -1 \n5,6:1");
  ASSERT_EQ(out.series.size(), 3u);
  EXPECT_EQ(out.series[0].values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(out.series[1].values, (std::vector<float>{4}));
  EXPECT_EQ(out.series[1].label, 1);
  EXPECT_EQ(out.series[2].length, 2);
  EXPECT_EQ(out.header.dimensions, 1);
}

TEST(Ts, RegressionAndNoLabels) {
  const Read target = read("@univariate true\n@targetLabel true\n@data\n1,2:-3.25\n");
  ASSERT_EQ(target.series.size(), 1u);
  EXPECT_TRUE(target.header.targeted);
  EXPECT_EQ(target.series[0].target, -3.25);
  EXPECT_EQ(target.series[0].values, (std::vector<float>{1, 2}));
  const Read plain = read("\xef\xbb\xbf@classLabel false\n@data\n1,2:3,4:5,6\n");
  ASSERT_EQ(plain.series.size(), 1u);
  EXPECT_FALSE(plain.header.labelled);
  EXPECT_EQ(plain.header.dimensions, 3);
  EXPECT_EQ(plain.series[0].values, (std::vector<float>{1, 3, 5, 2, 4, 6}));
}

TEST(Ts, MissingValuesAreRefusedWhereTheyAre) {
  EXPECT_EQ(error_of("@classLabel true a\n@data\n1,2:a\n3,?:a\n"),
            "f.ts:4: value 2 of channel 1: \"?\" where a number belongs; fill in missing values "
            "first");
  EXPECT_EQ(error_of("@classLabel true a\n@data\n1,2:NaN,2:a\n"),
            "f.ts:3: value 1 of channel 2: \"NaN\" where a number belongs; fill in missing values "
            "first");
  EXPECT_EQ(error_of("@classLabel true a\n@data\n1,,2:a\n"),
            "f.ts:3: value 2 of channel 1: empty where a number belongs; fill in missing values "
            "first");
  EXPECT_EQ(error_of("@classLabel true a\n@data\n:a\n").find("f.ts:3: value 1 of channel 1: empty"),
            0u);
  EXPECT_EQ(error_of("@targetLabel true\n@data\n1,2:x\n"),
            "f.ts:3: the target: \"x\" is not a number");
  EXPECT_EQ(error_of("@timeStamps true\n@data\n(1,2):a\n"),
            "f.ts:1: time stamps are not read; write the values alone, at equal steps of time, and "
            "@timeStamps false");
}

TEST(Ts, SizesAndLabelsAreThoseOfTheTags) {
  const std::string motions = kMotions;
  EXPECT_EQ(error_of(motions + "1,2,3:4,5,6:7,8,9:Running\n"), "f.ts:14: 3 channels, expected 2");
  EXPECT_EQ(error_of(motions + "1,2:4,5:Running\n"),
            "f.ts:14: 2 values per channel, expected 3 as @seriesLength or the first series says; "
            "write @equalLength false if lengths differ");
  EXPECT_EQ(error_of(motions + "1,2,3:4,5:Running\n"),
            "f.ts:14: channel 2 has 2 values, channel 1 has 3; the channels of a series have one "
            "length");
  EXPECT_EQ(error_of(motions + "1,2,3:4,5,6:running\n"),
            "f.ts:14: the label \"running\" is none of those behind @classLabel true");
  EXPECT_EQ(error_of(motions + "1,2,3\n"),
            "f.ts:14: no ':' in the series; its label is written behind the last one");
  EXPECT_EQ(error_of("@univariate true\n@classLabel true a\n@data\n1:2:a\n"),
            "f.ts:4: 2 channels, expected 1");
  EXPECT_EQ(error_of("@equalLength true\n@classLabel true a\n@data\n1,2:a\n1:a").find("f.ts:5: 1 "),
            0u);
  EXPECT_EQ(error_of("@classLabel true a\n@data\n1,2:1,2:a\n1,3:a"),
            "f.ts:4: 1 channels, expected 2");
}

TEST(Ts, TagsAreChecked) {
  EXPECT_EQ(error_of(""), "f.ts:1: no @data in the file; is it complete?");
  EXPECT_EQ(error_of("# x\n@problemName a\n"), "f.ts:2: no @data in the file; is it complete?");
  EXPECT_EQ(error_of("@clasLabel true a\n"),
            "f.ts:1: unknown tag \"@clasLabel\"; did you mean \"@classLabel\"?");
  EXPECT_EQ(error_of("1,2,3:a\n"),
            "f.ts:1: \"1,2,3:a\" before @data; a .ts file starts with tags such as @classLabel");
  EXPECT_EQ(error_of("@missing\n"), "f.ts:1: @missing is followed by nothing; write true or false");
  EXPECT_EQ(error_of("@univariate yes\n"),
            "f.ts:1: @univariate is followed by \"yes\"; write true or false");
  for (const char* bad : {"", " 0", " -1", " x", " 1.5", " 1 2", " 1e12"}) {
    EXPECT_EQ(error_of("@dimensions"s + bad + "\n").find("f.ts:1: @dimensions is followed by"), 0u);
  }
  EXPECT_EQ(error_of("@classLabel true\n"),
            "f.ts:1: @classLabel true without the classes; write them after it");
  EXPECT_EQ(error_of("@classLabel true a b a\n"), "f.ts:1: the class \"a\" is there twice");
  EXPECT_EQ(error_of("@data\n@data\n"), "f.ts:2: \"@data\" after @data");
  EXPECT_EQ(error_of("@missing false\n@Missing false\n"), "f.ts:2: @Missing for the second time");
  EXPECT_EQ(error_of("@classLabel true a\n@targetLabel true\n@data\n"),
            "f.ts:3: @classLabel true and @targetLabel true; a series has one of the two");
  EXPECT_EQ(error_of("@univariate true\n@dimensions 2\n@data\n"),
            "f.ts:3: @univariate true and @dimensions 2; these contradict each other");
  EXPECT_EQ(error_of("@missing false\n@problemName \xe9\n"),
            "f.ts:2: the byte 0xe9 is not UTF-8; save the text as UTF-8");
}

}  // namespace
}  // namespace rotrnn
