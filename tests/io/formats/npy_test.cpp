#include "rotrnn/io/formats/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;

// What NumPy saved: tests/golden/npy.py.
const nlohmann::json& golden() {
  static const auto json =
      nlohmann::json::parse(read_file(std::string(ROTRNN_SOURCE) + "/tests/golden/npy.json"));
  return json;
}

std::string bytes_of(const nlohmann::json& item) {
  const auto hex = item.at("bytes").get<std::string>();
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

double number_of(const nlohmann::json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

// A file with any header.
std::string file(std::string header, const std::string& data, char version = 1) {
  header += '\n';
  std::string out = "\x93NUMPY"s + version + '\0' + static_cast<char>(header.size()) +
                    static_cast<char>(header.size() >> 8);
  if (version > 1) out += "\0\0"s;
  return out + header + data;
}

std::string error_of(const std::string& bytes) {
  return test::message_of<std::runtime_error>([&] { NpyArray(bytes, "f.npy"); });
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

constexpr const char* kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";

TEST(Npy, ReadsWhatNumPySaves) {
  int cases = 0;
  for (const auto& [name, item] : golden().items()) {
    SCOPED_TRACE(name);
    const NpyArray array(bytes_of(item), name);
    EXPECT_EQ(array.shape(), item.at("shape").get<std::vector<int64_t>>());
    const auto& expected = item.at("numbers");
    ASSERT_EQ(array.size(), static_cast<int64_t>(expected.size()));
    const auto numbers = array.numbers();
    std::vector<float> values(static_cast<size_t>(array.size()));
    for (int64_t row = 0; row < array.rows(); ++row) {
      array.copy_row(row, values.data() + row * array.row_size());
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const double e = number_of(expected[i]);
      EXPECT_TRUE(numbers[i] == e || (std::isnan(e) && std::isnan(numbers[i]))) << i;
      EXPECT_EQ(std::signbit(numbers[i]), std::signbit(e)) << i;
      EXPECT_TRUE(values[i] == static_cast<float>(e) || (std::isnan(e) && std::isnan(values[i])));
    }
    if (!array.is_float()) {
      EXPECT_EQ(array.integers(), expected.get<std::vector<int64_t>>());
    }
    ++cases;
  }
  EXPECT_GE(cases, 33);
}

TEST(Npy, FloatsAreLabelsWhenTheyAreWhole) {
  const std::vector<float> whole{3, -1, 0}, half{3, 0.5f};
  EXPECT_EQ(NpyArray(npy_bytes(std::vector<int64_t>{3}, whole), "f").integers(),
            (std::vector<int64_t>{3, -1, 0}));
  EXPECT_EQ(test::message_of<std::runtime_error>(
                [&] { NpyArray(npy_bytes(std::vector<int64_t>{2}, half), "y.npy").integers(); }),
            "y.npy: value 1 is 0.5; a whole number belongs here");
  const NpyArray special(bytes_of(golden()["<f8"]), "y.npy");
  EXPECT_THROW(special.integers(), std::runtime_error);
  const std::string most =
      file("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", "\0\0\0\0\0\0\0\x80"s);
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { NpyArray(most, "y.npy").integers(); }),
            "y.npy: value 0 is 9223372036854775808; numbers from 2^63 are not read");
}

TEST(Npy, WritesWhatNumPySaves) {
  std::vector<float> cube(24);
  for (size_t i = 0; i < cube.size(); ++i) cube[i] = static_cast<float>(i);
  EXPECT_EQ(npy_bytes(std::vector<int64_t>{2, 3, 4}, cube), bytes_of(golden()["cube"]));
  const std::vector<int64_t> numbers{-2, -1, 0, 1, 2, 3};
  EXPECT_EQ(npy_bytes(std::vector<int64_t>{3, 2}, numbers), bytes_of(golden()["int64"]));
  const test::Folder folder;
  write_file_atomically(folder / "x.npy", npy_bytes(std::vector<int64_t>{3, 2}, numbers));
  EXPECT_EQ(read_npy(folder / "x.npy").integers(), numbers);
  EXPECT_EQ(npy_shape(std::vector<int64_t>{}), "()");
  EXPECT_EQ(npy_shape(std::vector<int64_t>{7}), "(7,)");
}

TEST(Npy, HeadersOfOtherWriters) {
  for (const char* header : {
           "{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<f4\"}",
           "  { 'descr' : '<f4' , 'shape': ( 2 , 1 , ) , 'fortran_order': True }  ",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}",
       }) {
    EXPECT_EQ(NpyArray(file(header, "abcdefgh"), "f").size(), 2) << header;
  }
}

TEST(Npy, EveryFieldOfTheHeaderIsChecked) {
  EXPECT_EQ(error_of(""), "f.npy: offset 0: the file ends within the header; is it complete?");
  const std::string whole = file(kGood, "abcdefgh");
  EXPECT_NO_THROW(NpyArray(whole, "f"));
  for (size_t n = 0; n < whole.size(); ++n)
    expect_contains(error_of(whole.substr(0, n)), "f.npy: ");
  expect_contains(error_of("PK\3\4"), "offset 0: a .npz");
  expect_contains(error_of("hello world"), "offset 0: the file starts with \"hello \"");
  expect_contains(error_of(file(kGood, "", 4)), "offset 6: version 4.0");
  std::string minor = whole;
  minor[7] = 1;
  expect_contains(error_of(minor), "offset 6: version 1.1");

  const auto header_error = [](const std::string& header) {
    return error_of(file(header, "abcdefgh"));
  };
  for (const auto& [type, what] : {std::pair{"|O", "Python objects"},
                                   {"<U5", "text"},
                                   {"|S1", "text"},
                                   {"<c8", "complex"},
                                   {"<M8[ns]", "dates"},
                                   {"|V4", "raw"},
                                   {"<f16", "a type"},
                                   {"f4", "a type"},
                                   {"|f4", "a type"},
                                   {"", "a type"},
                                   {"<", "a type"},
                                   {"<i3", "a type"}}) {
    const std::string seen = header_error("{'descr': '" + std::string(type) +
                                          "', 'fortran_order': False, 'shape': (2,), }");
    expect_contains(seen, "values of type \"" + std::string(type) + "\", ");
    expect_contains(seen, what);
    expect_contains(seen, "numpy.save as float32");
  }
  expect_contains(header_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
                  "records with named fields");
  for (const char* bad : {
           "",
           "{",
           "{}",
           "[]",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,,1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
           "{descr: '<f4', 'fortran_order': False, 'shape': (2,)}",
       }) {
    expect_contains(header_error(bad), "f.npy: offset ");
  }
  std::string dimensions = "1";
  for (int i = 0; i < 32; ++i) dimensions += ",1";
  expect_contains(
      header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (" + dimensions + ")}"),
      "more than 32 dimensions");
}

TEST(Npy, ThePayloadHasTheExactLength) {
  EXPECT_EQ(
      error_of(file(kGood, "abcdefg")),
      "f.npy: offset 68: the header promises an array of (2,) with 4 bytes per value, the file "
      "holds 7 bytes; it is cut off or damaged");
  EXPECT_EQ(error_of(file(kGood, "abcdefghi")),
            "f.npy: offset 76: bytes after the array of (2,); save one array per file");
  for (const char* shape : {"(9223372036854775807,)", "(4294967296, 4294967296)",
                            "(4611686018427387904, 4)", "(4294967296, 4294967296, 0)",
                            "(2305843009213693952, 1)", "(65536, 65536, 65536, 65536)"}) {
    for (const char* fortran : {"True", "False"}) {
      expect_contains(error_of(file("{'descr': '<f8', 'fortran_order': "s + fortran +
                                        ", 'shape': " + shape + "}",
                                    "abcdefgh")),
                      "the header promises an array of " + std::string(shape));
    }
  }
  // No rows to walk, however many the header says.
  const NpyArray empty(
      file("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 0)}", ""), "f");
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.numbers().size(), 0u);
  EXPECT_EQ(empty.integers().size(), 0u);
}

}  // namespace
}  // namespace rotrnn
