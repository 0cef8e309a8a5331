#include "rotrnn/data/records.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::Folder;
using test::message_of;

Record named(const std::string& name, const std::string& label = "") {
  Record r;
  r.name = name;
  r.label = label;
  return r;
}

std::string text_of(const Records& r, int64_t sequence) {
  const auto bytes = r.sequences.at(sequence);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Records, KeepWhatWasAdded) {
  RecordWriter out;
  out.form({Element::i16, 2, 1.0 / 32768, 1}, "a.wav");
  const std::vector<int16_t> samples{1, -2, 3, -4, 5, -6};
  Record r = named("a.wav", "dog");
  r.group = "ann";
  out.add_values(std::move(r), std::span<const int16_t>(samples));
  const Records records = out.finish();
  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(records.steps(0), 3);
  EXPECT_EQ(records.examples[0].group, "ann");
  EXPECT_EQ(records.classes, std::vector<std::string>{"dog"});
  EXPECT_EQ(std::memcmp(records.sequences.at(0).data(), samples.data(), 12), 0);
}

TEST(Records, TheOrderOfFilesDoesNotMatterByName) {
  RecordWriter a, b;
  const std::pair<const char*, const char*> files[] = {{"c", "three"}, {"a", "one"}, {"b", "two"}};
  for (int i = 0; i < 3; ++i) {
    for (RecordWriter* out : {&a, &b}) {
      const auto& [name, text] = files[out == &a ? i : 2 - i];
      out->form({}, name);
      out->add_text(named(name, text), text);
    }
  }
  const Records x = a.finish(RecordWriter::Order::by_name);
  const Records y = b.finish(RecordWriter::Order::by_name);
  const std::vector<std::string> texts{"one", "two", "three"};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(text_of(x, i), texts[i]);
    EXPECT_EQ(text_of(y, i), texts[i]);
    EXPECT_EQ(x.classes[x.labels[i]], texts[i]);
    EXPECT_EQ(x.labels[i], y.labels[i]);
  }
}

TEST(Records, PairsStayTogetherWhenSorted) {
  RecordWriter out;
  out.form({Element::u8, 1, 1, 2}, "pairs");
  const auto add = [&](const std::string& name, std::string_view first, std::string_view second) {
    const std::span<const std::byte> both[] = {std::as_bytes(std::span(first)),
                                               std::as_bytes(std::span(second))};
    out.add(named(name, "1"), both);
  };
  add("2", "c", "dd");
  add("1", "a", "bb");
  const Records r = out.finish(RecordWriter::Order::by_name);
  EXPECT_EQ(text_of(r, 0) + text_of(r, 1) + text_of(r, 2) + text_of(r, 3), "abbcdd");
}

TEST(Records, LargeSetsGoToAFileAndAreTheSame) {
  const Folder folder;
  RecordWriter small(1024), large(1, folder.path());
  std::string text(100'000, 'x');
  for (int i = 0; i < 60; ++i) {
    text[static_cast<size_t>(i) * 7] = static_cast<char>('a' + i % 26);
    for (RecordWriter* out : {&small, &large}) {
      out->form({}, "t");
      out->add_text(named(std::to_string(i), "l"), text);
    }
  }
  const Records a = small.finish(), b = large.finish();
  for (int64_t i = 0; i < 60; ++i) ASSERT_EQ(text_of(a, i), text_of(b, i)) << i;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the file has no name";
}

TEST(Records, ClassesAreInOrderOfTheirNamesOrValues) {
  const auto classes = [](const std::vector<std::string>& labels) {
    RecordWriter out;
    out.form({}, "t");
    for (size_t i = 0; i < labels.size(); ++i) {
      out.add_text(named(std::to_string(i), labels[i]), "x");
    }
    const Records r = out.finish();
    for (size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(r.classes[r.labels[i]], labels[i]);
    return r.classes;
  };
  EXPECT_EQ(classes({"b", "a", "c", "a"}), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(classes({"10", "9", "-1"}), (std::vector<std::string>{"-1", "9", "10"}));
  EXPECT_EQ(classes({"10", "9", "x"}), (std::vector<std::string>{"10", "9", "x"}));
  EXPECT_EQ(classes({"nan", "10", "9"}), (std::vector<std::string>{"10", "9", "nan"}))
      << "not a number that could be put in order";
}

TEST(Records, WhatDoesNotFitIsRefused) {
  RecordWriter out;
  out.form({Element::u8, 1, 1, 1}, "a");
  out.classes({"neg", "pos"});
  EXPECT_NE(message_of<std::runtime_error>([&] {
              out.add_text(named("a.txt", "bad"), "x");
            }).find("a.txt: the label \"bad\" is not one of neg, pos"),
            std::string::npos);
  EXPECT_NE(message_of<std::runtime_error>([&] {
              out.add_text(named("b.txt", "pos"), "");
            }).find("b.txt: it is empty"),
            std::string::npos);
  EXPECT_NE(message_of<std::runtime_error>([&] {
              out.form({Element::u8, 3, 1, 1}, "c.png");
            }).find("c.png: 3 channels, but the files before it have 1"),
            std::string::npos);
  out.add_text(named("d.txt", "pos"), "x");
  out.add_text(named("d.txt", "neg"), "y");
  EXPECT_NE(message_of<std::runtime_error>([&] { out.finish(); }).find("d.txt: there are two"),
            std::string::npos);
}

}  // namespace
}  // namespace rotrnn
