#include "rotrnn/io/formats/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr const char* where = "runs/a/weights.safetensors";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const SafeTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

std::string with_length(uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  return bytes + rest;
}

std::string file_of(const std::string& header, const std::string& data = "") {
  return with_length(header.size(), header + data);
}

SafeTensorFile parse(const std::string& bytes) {
  return SafeTensorFile::from_bytes(bytes, where);
}

// One tensor "x" of 4 bytes with the given members, as in file_of(tensor(...), "abcd").
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

void expect_consistent(const SafeTensorFile& file, std::size_t data_size) {
  std::size_t total = 0;
  for (const std::string& name : file.names()) {
    const SafeTensor& tensor = file.at(name);
    std::size_t count = dtype_size(tensor.dtype);
    for (const int64_t dimension : tensor.shape) count *= static_cast<std::size_t>(dimension);
    EXPECT_EQ(count, tensor.data.size()) << name;
    total += tensor.data.size();
  }
  EXPECT_EQ(total, data_size);
}

class SafeTensorsTest : public testing::Test {
 protected:
  SafeTensorsTest() {
    std::string pattern = (fs::temp_directory_path() / "rotrnn-safetensors-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ / "weights.safetensors";
  }
  ~SafeTensorsTest() override { fs::remove_all(folder_); }

  void expect_refused(const std::vector<NamedTensor>& tensors, const std::string& part,
                      const SafeTensorMetadata& metadata = {}) {
    try {
      write_safetensors(file_, tensors, metadata);
      ADD_FAILURE() << "written: " << part;
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file_.string() + ": ")) << message;
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    EXPECT_TRUE(fs::is_empty(folder_));
  }

  fs::path folder_;
  fs::path file_;
};

// Tensors of every kind that is easy to get wrong: scalar, empty, odd sizes, names to be escaped.
struct Sample {
  std::string floats = std::string(24, 'f');
  std::string scalar = "12345678";
  std::string odd = "abc";
  std::vector<NamedTensor> tensors{{"z.weight", {Dtype::f32, {2, 3}, bytes_of(floats)}},
                                   {"a \"quoted\"\n\xc3\xa9", {Dtype::u8, {3}, bytes_of(odd)}},
                                   {"empty", {Dtype::f64, {4, 0}, {}}},
                                   {"scalar", {Dtype::i64, {}, bytes_of(scalar)}}};
  SafeTensorMetadata metadata{{"format", "rotrnn"}, {"epoch", "12"}, {"note", "line\nline"}};
};

TEST_F(SafeTensorsTest, RoundTrip) {
  const Sample sample;
  write_safetensors(file_, sample.tensors, sample.metadata);
  const SafeTensorFile file(file_);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : sample.tensors) {
    names.push_back(name);
    ASSERT_TRUE(file.contains(name));
    EXPECT_EQ(file.at(name).dtype, tensor.dtype);
    EXPECT_EQ(file.at(name).shape, tensor.shape);
    EXPECT_EQ(text_of(file.at(name)), text_of(tensor));
  }
  EXPECT_EQ(file.names(), names);
  EXPECT_EQ(file.metadata(), sample.metadata);
  EXPECT_FALSE(file.contains("missing"));
}

TEST_F(SafeTensorsTest, EveryDtypeKeepsItsNameAndSize) {
  const std::array<std::pair<const char*, std::size_t>, 13> expected{{{"BOOL", 1},
                                                                      {"U8", 1},
                                                                      {"I8", 1},
                                                                      {"I16", 2},
                                                                      {"U16", 2},
                                                                      {"F16", 2},
                                                                      {"BF16", 2},
                                                                      {"I32", 4},
                                                                      {"U32", 4},
                                                                      {"F32", 4},
                                                                      {"F64", 8},
                                                                      {"I64", 8},
                                                                      {"U64", 8}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(dtype_name(dtype), expected[i].first);
    EXPECT_EQ(dtype_size(dtype), expected[i].second);
    const std::string data(3 * expected[i].second, 'd');
    write_safetensors(file_, std::vector<NamedTensor>{{"x", {dtype, {3}, bytes_of(data)}}});
    EXPECT_EQ(SafeTensorFile(file_).at("x").dtype, dtype);
  }
  EXPECT_EQ(dtype_name(Dtype::boolean), "BOOL");
  EXPECT_EQ(dtype_name(Dtype::bf16), "BF16");
  EXPECT_EQ(dtype_name(Dtype::u64), "U64");
}

TEST_F(SafeTensorsTest, NoTensors) {
  write_safetensors(file_, {});
  EXPECT_EQ(read_file(file_), file_of("{}      "));
  const SafeTensorFile file(file_);
  EXPECT_TRUE(file.names().empty());
  EXPECT_TRUE(file.metadata().empty());
}

// Built by hand: 142 bytes of JSON and 2 spaces are 144 (0x90), then 1, -2 as floats and 7, 9.
TEST_F(SafeTensorsTest, GoldenFile) {
  const std::string golden =
      "\x90\x00\x00\x00\x00\x00\x00\x00"
      "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]}}"
      "  "
      "\x00\x00\x80\x3f\x00\x00\x00\xc0\x07\x09"s;
  ASSERT_EQ(golden.size(), 8u + 144u + 10u);
  const std::array<float, 2> w{1.0F, -2.0F};
  const std::array<uint8_t, 2> b{7, 9};
  const std::vector<NamedTensor> tensors{{"w", {Dtype::f32, {2, 1}, std::as_bytes(std::span(w))}},
                                         {"b", {Dtype::u8, {2}, std::as_bytes(std::span(b))}}};
  write_safetensors(file_, tensors, {{"b", "2"}, {"a", "1"}});
  EXPECT_EQ(read_file(file_), golden);

  const SafeTensorFile file = parse(golden);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"w", "b"}));
  EXPECT_EQ(file.metadata(), (SafeTensorMetadata{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(file.at("w").dtype, Dtype::f32);
  EXPECT_EQ(file.at("w").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(text_of(file.at("w")), golden.substr(8 + 144, 8));
  EXPECT_EQ(text_of(file.at("b")), "\x07\x09");
}

TEST_F(SafeTensorsTest, DataBeginAtAMultipleOfEight) {
  for (std::size_t length = 1; length < 20; ++length) {
    write_safetensors(file_,
                      std::vector<NamedTensor>{{std::string(length, 'n'), {Dtype::f32, {0}, {}}}});
    EXPECT_EQ(read_file(file_).size() % 8, 0u);
  }
}

TEST_F(SafeTensorsTest, CopiesAndMovesKeepTheirData) {
  const Sample sample;
  write_safetensors(file_, sample.tensors);
  auto first = std::make_unique<SafeTensorFile>(file_);
  const SafeTensorFile copy = *first;
  const SafeTensorFile moved = std::move(*first);
  first.reset();
  EXPECT_EQ(text_of(copy.at("z.weight")), sample.floats);
  EXPECT_EQ(text_of(moved.at("scalar")), sample.scalar);
}

TEST_F(SafeTensorsTest, FailedWriteLeavesTheOldFileAndNothingElse) {
  const Sample sample;
  write_safetensors(file_, sample.tensors);
  const std::string before = read_file(file_);
  const std::vector<NamedTensor> bad{{"x", {Dtype::f32, {2}, bytes_of(sample.odd)}}};
  EXPECT_THROW(write_safetensors(file_, bad), std::invalid_argument);
  EXPECT_EQ(read_file(file_), before);

  fs::create_directory(folder_ / "taken");
  EXPECT_THROW(write_safetensors(folder_ / "taken", sample.tensors), std::runtime_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(SafeTensorsTest, WriterRefuses) {
  const std::string four = "abcd";
  const SafeTensor good{Dtype::f32, {1}, bytes_of(four)};
  const int64_t big = int64_t{1} << 62;
  expect_refused({{"x", good}, {"x", good}}, "tensor \"x\" is given twice");
  expect_refused({{"__metadata__", good}}, "reserves this name");
  expect_refused({{"x", {Dtype::f32, {2}, bytes_of(four)}}}, "4 bytes of data, F32 of shape [2]");
  expect_refused({{"x", {Dtype::f32, {}, {}}}}, "0 bytes of data, F32 of shape [] needs 4");
  expect_refused({{"x", {Dtype::u8, {-2, -2}, bytes_of(four)}}}, "negative shape [-2, -2]");
  expect_refused({{"x", {Dtype::u8, {big, 4}, {}}}}, "overflows");
  expect_refused({{"x\xff", good}}, "not UTF-8");
  expect_refused({{"x", good}}, "not UTF-8", {{"key", "\xff"}});
  expect_refused({{"x", good}}, "not UTF-8", {{"\xff", "value"}});
}

TEST_F(SafeTensorsTest, WriterRefusesAHeaderOverTheLimit) {
  std::string text;
  text.resize(100'000'000, 'v');
  expect_refused({}, "the format allows 100000000", {{"key", text}});
}

TEST_F(SafeTensorsTest, MissingTensorNamesTensorAndFile) {
  write_safetensors(file_, {});
  try {
    SafeTensorFile(file_).at("layers.0.theta");
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with(file_.string() + ": ")) << message;
    EXPECT_NE(message.find("\"layers.0.theta\""), std::string::npos) << message;
  }
}

TEST_F(SafeTensorsTest, MissingFileNamesPath) {
  try {
    const SafeTensorFile file(file_);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(file_.string() + ": ")) << error.what();
  }
}

TEST_F(SafeTensorsTest, TruncationAnywhereIsAnError) {
  const Sample sample;
  write_safetensors(file_, sample.tensors, sample.metadata);
  const std::string whole = read_file(file_);
  EXPECT_NO_THROW(parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse(whole.substr(0, size)), std::runtime_error) << size << " bytes";
    fs::resize_file(file_, whole.size() - 1 - size);
    EXPECT_THROW(SafeTensorFile{file_}, std::runtime_error) << whole.size() - 1 - size << " bytes";
  }
}

TEST_F(SafeTensorsTest, CorruptionOfTheHeaderIsAnErrorOrAnotherFile) {
  const Sample sample;
  write_safetensors(file_, sample.tensors, sample.metadata);
  const std::string whole = read_file(file_);
  const std::size_t data_size = 24 + 3 + 8;
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < whole.size() - data_size; ++i) {
    std::string values = "09-.e\"\\{}[],: \0\xff"s;
    for (int bit = 0; bit < 8; ++bit) values += static_cast<char>(whole[i] ^ (1 << bit));
    for (const char value : values) {
      std::string bytes = whole;
      bytes[i] = value;
      try {
        expect_consistent(parse(bytes), data_size);
        ++accepted;
      } catch (const std::runtime_error&) {
      }
    }
  }
  // At least every letter of a name can become another one.
  EXPECT_GT(accepted, 100u);
}

TEST_F(SafeTensorsTest, ValidFiles) {
  const std::string members = R"("dtype":"U8","shape":[2],"data_offsets":)";
  // The order in the header is free, the order of the data counts.
  const SafeTensorFile swapped =
      parse(file_of(R"({"b":{)" + members + R"([2,4]},"a":{)" + members + "[0,2]}}", "aabb"));
  EXPECT_EQ(swapped.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(text_of(swapped.at("b")), "bb");

  // Empty tensors before, between and after the others.
  const std::string empty = R"({"dtype":"U8","shape":[0],"data_offsets":)";
  const SafeTensorFile mixed =
      parse(file_of(R"({"z":)" + empty + R"([0,0]},"y":{)" + members + R"([0,2]},"x":)" + empty +
                        R"([2,2]},"w":{)" + members + R"([2,4]},"v":)" + empty + "[4,4]}}",
                    "yyww"));
  EXPECT_EQ(mixed.names(), (std::vector<std::string>{"z", "y", "x", "w", "v"}));

  EXPECT_TRUE(parse(file_of(tensor(R"("F32")", "[]", "[0,4]"), "abcd")).at("x").shape.empty());
  EXPECT_NO_THROW(parse(file_of("{} ")));
  EXPECT_NO_THROW(parse(file_of(R"({"__metadata__":{}})")));
  EXPECT_TRUE(parse(file_of(R"({"":{)" + members + "[0,2]}}", "ab")).contains(""));
  EXPECT_TRUE(parse(file_of(R"({"dtype":{)" + members + "[0,2]}}", "ab")).contains("dtype"));
}

TEST_F(SafeTensorsTest, MessagesStayShort) {
  const std::string long_name(1'000'000, 'n');
  const std::string bad_name = R"({")" + long_name + R"(":1})";
  const std::string bad_json = R"({")" + long_name;
  std::string zeros = "[0";
  for (int i = 0; i < 100'000; ++i) zeros += ",0";
  for (const std::string& header : {bad_name, bad_json, tensor(R"("U8")", zeros + "]", "[0,1]")}) {
    try {
      parse(file_of(header, "a"));
      FAIL() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_LT(std::strlen(error.what()), 400u);
    }
  }
}

struct Rejection {
  const char* name;
  std::string bytes;
  const char* message;
};

void PrintTo(const Rejection& rejection, std::ostream* stream) {
  *stream << rejection.name;
}

class RejectionTest : public testing::TestWithParam<Rejection> {};

TEST_P(RejectionTest, SaysWhatIsWrong) {
  try {
    parse(GetParam().bytes);
    FAIL() << "accepted";
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with(std::string(where) + ": ")) << message;
    EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
    EXPECT_NE(message.find("; "), std::string::npos) << "nothing to do: " << message;
  }
}

// The header of two tensors of 4 bytes with the given offsets.
std::string two_tensors(const std::string& first, const std::string& second) {
  const std::string members = R"({"dtype":"F32","shape":[1],"data_offsets":)";
  return R"({"a":)" + members + first + R"(},"b":)" + members + second + "}}";
}

const std::string u8_name = R"("U8")";

INSTANTIATE_TEST_SUITE_P(
    SafeTensors, RejectionTest,
    testing::ValuesIn(std::vector<Rejection>{
        {"EmptyFile", "", "has 0 bytes, a safetensors file has at least 8"},
        {"SevenBytes", "1234567", "has 7 bytes"},
        {"HeaderOverLimit", with_length(100'000'001, "{}"), "the format allows 100000000"},
        {"HeaderOfAllBits", with_length(~uint64_t{0}, "{}"), "header says 18446744073709551615"},
        {"HeaderLongerThanFile", with_length(1234, "{}"),
         "header says 1234 bytes, the file has 2 after the length; it is truncated"},
        {"EmptyHeader", file_of(""), "does not begin with '{'"},
        {"HeaderBeginsWithSpace", file_of(" {}"), "does not begin with '{'"},
        {"HeaderIsArray", file_of("[]"), "does not begin with '{'"},
        {"HeaderHasByteOrderMark", file_of("\xef\xbb\xbf{}"), "does not begin with '{'"},
        {"ZeroByteInHeader", file_of(std::string("{}\0{", 4)), "zero byte at 2"},
        {"InvalidJson", file_of(R"({"x":})"), "not valid JSON at byte 6"},
        {"TextAfterJson", file_of("{}{}"), "not valid JSON at byte 3"},
        {"Comment", file_of("{/**/}"), "not valid JSON"},
        {"NotUtf8", file_of("{\"\xff\":1}"), "not valid JSON"},
        {"LoneSurrogate", file_of(R"({"\ud800":1})"), "not valid JSON"},
        {"HugeNumber", file_of(R"({"x":1e999})"), "number that no 64 bits hold"},
        {"DuplicateTensor", file_of(R"({"x":1,"x":1})"), "the key \"x\" twice"},
        {"DuplicateEscapedTensor", file_of(R"({"x":1,"\u0078":1})"), "the key \"x\" twice"},
        {"DuplicateMember", file_of(R"({"x":{"dtype":"U8","dtype":"U8"}})"), "\"dtype\" twice"},
        {"DuplicateMetadata", file_of(R"({"__metadata__":{},"__metadata__":{}})"),
         "\"__metadata__\" twice"},
        {"DuplicateMetadataKey", file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "\"k\" twice"},
        {"DeepArrays", file_of(R"({"x":)" + std::string(1'000'000, '[')), "nested too deeply"},
        {"DeepObjects", file_of([] {
           std::string text;
           for (int i = 0; i < 100'000; ++i) text += R"({"x":)";
           return text;
         }()),
         "nested too deeply"},
        {"DepthFour", file_of(tensor(u8_name, "[[1]]", "[0,1]"), "a"), "nested too deeply"},
        {"MetadataNotObject", file_of(R"({"__metadata__":"text"})"), "is of type string, not an"},
        {"MetadataNotStrings", file_of(R"({"__metadata__":{"k":1}})"), "of type number for \"k\""},
        {"MetadataNested", file_of(R"({"__metadata__":{"k":{}}})"), "of type object for \"k\""},
        {"TensorNotObject", file_of(R"({"x":[]})"), "tensor \"x\": is of type array"},
        {"NoDtype", file_of(R"({"x":{"shape":[],"data_offsets":[0,1]}})", "a"), "has no dtype"},
        {"NoShape", file_of(R"({"x":{"dtype":"U8","data_offsets":[0,1]}})", "a"), "has no shape"},
        {"NoOffsets", file_of(R"({"x":{"dtype":"U8","shape":[]}})"), "has no data_offsets"},
        {"UnknownMember",
         file_of(R"({"x":{"dtype":"U8","shape":[],"data_offsets":[0,1],"more":1}})", "a"),
         "has keys besides"},
        {"DtypeNotString", file_of(tensor("8", "[]", "[0,1]"), "a"), "dtype of type number"},
        {"UnknownDtype", file_of(tensor(R"("F31")", "[]", "[0,1]"), "a"), "unknown dtype \"F31\""},
        {"LowerCaseDtype", file_of(tensor(R"("u8")", "[]", "[0,1]"), "a"), "unknown dtype \"u8\""},
        {"ShapeNotArray", file_of(tensor(u8_name, "1", "[0,1]"), "a"), "shape of type number"},
        {"ShapeOfStrings", file_of(tensor(u8_name, R"(["1"])", "[0,1]"), "a"), "a string in shape"},
        {"ShapeOfFloats", file_of(tensor(u8_name, "[1.0]", "[0,1]"), "a"), "a float in shape"},
        {"NegativeShape", file_of(tensor(u8_name, "[-1,-1]", "[0,1]"), "a"),
         "negative number in shape: -1"},
        {"DimensionOverflow", file_of(tensor(u8_name, "[9223372036854775808]", "[0,1]"), "a"),
         "dimension that overflows 63 bits: 9223372036854775808"},
        {"ProductOverflow", file_of(tensor(u8_name, "[4294967296,4294967296]", "[0,0]")),
         "shape [4294967296, 4294967296], which overflows"},
        {"BytesOverflow", file_of(tensor(R"("F64")", "[1152921504606846976]", "[0,0]")),
         "shape [1152921504606846976], which overflows"},
        {"OverflowHiddenByZero", file_of(tensor(u8_name, "[0,4294967296,4294967296]", "[0,0]")),
         "which overflows"},
        {"OffsetsNotArray", file_of(tensor(u8_name, "[]", "{}"), "a"),
         "not an array of two numbers"},
        {"OneOffset", file_of(tensor(u8_name, "[]", "[0]"), "a"), "not an array of two numbers"},
        {"ThreeOffsets", file_of(tensor(u8_name, "[]", "[0,1,1]"), "a"),
         "not an array of two numbers"},
        {"OffsetOfBool", file_of(tensor(u8_name, "[]", "[false,1]"), "a"),
         "boolean in data_offsets"},
        {"NegativeOffset", file_of(tensor(u8_name, "[]", "[-1,0]"), "a"),
         "negative number in data_offsets: -1"},
        {"OffsetBeyond64Bits", file_of(tensor(u8_name, "[]", "[0,18446744073709551616]"), "a"),
         "a float in data_offsets"},
        {"BeginAfterEnd", file_of(tensor(u8_name, "[1]", "[1,0]"), "a"),
         "out of order: begin 1, end 0"},
        {"SizeUnlikeShape", file_of(tensor(u8_name, "[3]", "[0,4]"), "abcd"),
         "has 4 bytes at [0, 4], U8 of shape [3] needs 3"},
        {"SizeUnlikeDtype", file_of(tensor(R"("F64")", "[1]", "[0,4]"), "abcd"), "needs 8"},
        {"DataTruncated", file_of(tensor(u8_name, "[4]", "[0,4]"), "abc"),
         "ends at byte 4 of the data, the file has 3; it is truncated"},
        {"Overlap", file_of(two_tensors("[0,4]", "[2,6]"), "abcdef"),
         "begins at byte 2 of the data, the one before ends at 4: they overlap"},
        {"SameBytesTwice", file_of(two_tensors("[0,4]", "[0,4]"), "abcd"), "they overlap"},
        {"HoleBetween", file_of(two_tensors("[0,4]", "[6,10]"), "abcdefghij"),
         "begins at byte 6 of the data, the one before ends at 4: there is a hole"},
        {"HoleAtBegin", file_of(tensor(u8_name, "[2]", "[2,4]"), "abcd"), "there is a hole"},
        {"BytesAfterLast", file_of(tensor(u8_name, "[4]", "[0,4]"), "abcde"),
         "the tensors end at byte 4 of the data, the file has 5"},
        {"DataWithoutTensors", file_of("{}", "a"), "the tensors end at byte 0"},
    }),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace rotrnn
