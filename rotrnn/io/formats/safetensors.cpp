#include "rotrnn/io/formats/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/mapped_file.h"

namespace rotrnn {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "the data of a safetensors file are little-endian and are used as they are");

constexpr std::size_t length_bytes = 8;
constexpr uint64_t header_limit = 100'000'000;
constexpr uint64_t int64_limit = std::numeric_limits<int64_t>::max();
constexpr std::string_view metadata_key = "__metadata__";

struct DtypeRow {
  std::string_view name;
  std::size_t size;
};

// In the order of the enum.
constexpr auto dtype_table = std::to_array<DtypeRow>({{"BOOL", 1},
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
                                                      {"U64", 8}});

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i)
    if (dtype_table[i].name == name) return static_cast<Dtype>(i);
  return std::nullopt;
}

// Names and shapes for error messages: they come from the file and can be long or unprintable.
std::string printable(std::string_view name) {
  constexpr std::size_t most = 80;
  const std::string text =
      json(std::string(name.substr(0, most))).dump(-1, ' ', true, json::error_handler_t::replace);
  return name.size() > most ? text + "..." : text;
}

std::string printable(std::span<const int64_t> shape) {
  constexpr std::size_t most = 16;
  return fmt::format("[{}{}]", fmt::join(shape.first(std::min(most, shape.size())), ", "),
                     shape.size() > most ? ", ..." : "");
}

// The bytes of a tensor of non-negative dimensions; empty if no int64 holds them. A zero counts as
// one for the overflow, because strides are computed from the other dimensions all the same.
std::optional<uint64_t> byte_count(Dtype dtype, const std::vector<int64_t>& shape) {
  uint64_t bound = dtype_size(dtype);
  bool empty = false;
  for (const int64_t dimension : shape) {
    empty = empty || dimension == 0;
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(dimension, 1));
    if (__builtin_mul_overflow(bound, factor, &bound)) return std::nullopt;
  }
  if (bound > int64_limit) return std::nullopt;
  return empty ? 0 : bound;
}

// Writing.

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& message) {
  throw std::invalid_argument(fmt::format("{}: {}", file.string(), message));
}

std::string json_string(const std::filesystem::path& file, const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::type_error&) {
    refuse(file, fmt::format("{} is not UTF-8; give a name or text that is", printable(text)));
  }
}

void check_tensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    const std::string who = "tensor " + printable(name);
    if (name == metadata_key) refuse(file, who + ": the format reserves this name; choose another");
    if (!names.insert(name).second) refuse(file, who + " is given twice; rename one of them");
    if (std::any_of(tensor.shape.begin(), tensor.shape.end(),
                    [](int64_t dimension) { return dimension < 0; }))
      refuse(file, fmt::format("{} has the negative shape {}; give dimensions of at least 0", who,
                               printable(tensor.shape)));
    const std::optional<uint64_t> expected = byte_count(tensor.dtype, tensor.shape);
    if (!expected)
      refuse(file, fmt::format("{} of shape {} overflows 63 bits of bytes; check the shape", who,
                               printable(tensor.shape)));
    if (*expected != tensor.data.size())
      refuse(
          file,
          fmt::format(
              "{} has {} bytes of data, {} of shape {} needs {}; give all of it, contiguous", who,
              tensor.data.size(), dtype_name(tensor.dtype), printable(tensor.shape), *expected));
  }
}

// By hand, because a json object would sort the tensors by name.
std::string make_header(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                        const SafeTensorMetadata& metadata) {
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> lines;
    for (const auto& [key, value] : metadata)
      lines.push_back(json_string(file, key) + ":" + json_string(file, value));
    members.push_back(fmt::format("\"{}\":{{{}}}", metadata_key, fmt::join(lines, ",")));
  }
  std::size_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t end = begin + tensor.data.size();
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_string(file, name), dtype_name(tensor.dtype),
                                  fmt::join(tensor.shape, ","), begin, end));
    begin = end;
  }
  std::string header = fmt::format("{{{}}}", fmt::join(members, ","));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > header_limit)
    refuse(file, fmt::format("the header would have {} bytes, the format allows {}; write fewer "
                             "tensors or less metadata",
                             header.size(), header_limit));
  return header;
}

// Reading.

[[noreturn]] void reject(const std::string& where, const std::string& message) {
  throw std::runtime_error(where + ": " + message);
}

[[noreturn]] void malformed(const std::string& where, const std::string& message) {
  reject(where, message + "; write the file again with a tool that keeps to the format");
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string_view find_header(const std::string& where, std::string_view bytes) {
  if (bytes.size() < length_bytes)
    reject(where, fmt::format("has {} bytes, a safetensors file has at least {}; it is truncated, "
                              "restore it from a copy",
                              bytes.size(), length_bytes));
  const uint64_t length = little_endian(bytes);
  if (length > header_limit)
    reject(where, fmt::format("header says {} bytes, the format allows {}; this is not a "
                              "safetensors file, check the path",
                              length, header_limit));
  if (length > bytes.size() - length_bytes)
    reject(where, fmt::format("header says {} bytes, the file has {} after the length; it is "
                              "truncated, restore it from a copy",
                              length, bytes.size() - length_bytes));
  const std::string_view header = bytes.substr(length_bytes, length);
  if (!header.starts_with('{'))
    reject(where, "header does not begin with '{'; this is not a safetensors file, check the path");
  // The JSON parser takes a zero byte for the end and would not look at what follows.
  if (const std::size_t zero = header.find('\0'); zero != std::string_view::npos)
    reject(where, fmt::format("header has a zero byte at {}; it is damaged, restore it from a copy",
                              zero));
  return header;
}

// Sees what the parsed document no longer shows: keys that came twice, and depth before it costs.
class HeaderWatch {
 public:
  explicit HeaderWatch(const std::string& where) : where_(where) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    constexpr int deepest = 2;  // the arrays in a tensor in the header
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth > deepest) malformed(where_, "header is nested too deeply");
      keys_[depth + 1].clear();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_[depth].insert(key).second)
        malformed(where_, fmt::format("header has the key {} twice", printable(key)));
    }
    return true;
  }

 private:
  const std::string& where_;
  std::array<std::set<std::string>, 4> keys_;  // by depth
};

json parse_header(const std::string& where, std::string_view header) {
  HeaderWatch watch(where);
  try {
    return json::parse(header, std::ref(watch));
  } catch (const json::parse_error& error) {
    // Not error.what(): it quotes the text that it could not read, which can be megabytes.
    reject(where, fmt::format("header is not valid JSON at byte {}; it is damaged, restore it from "
                              "a copy",
                              error.byte));
  } catch (const json::exception&) {
    reject(where,
           "header has a number that no 64 bits hold; it is damaged, restore it from a copy");
  }
}

SafeTensorMetadata read_metadata(const std::string& where, const json& member) {
  if (!member.is_object())
    malformed(where,
              fmt::format("{} is of type {}, not an object", metadata_key, member.type_name()));
  SafeTensorMetadata metadata;
  for (const auto& [key, value] : member.items()) {
    if (!value.is_string())
      malformed(where, fmt::format("{} has a value of type {} for {}, not a string", metadata_key,
                                   value.type_name(), printable(key)));
    metadata.emplace(key, value.get_ref<const std::string&>());
  }
  return metadata;
}

uint64_t read_integer(const std::string& where, const char* key, const json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer())
    malformed(where, fmt::format("has a negative number in {}: {}", key, value.get<int64_t>()));
  malformed(where, fmt::format("has a {} in {}, not an integer",
                               value.is_number() ? "float" : value.type_name(), key));
}

Dtype read_dtype(const std::string& where, const json& value) {
  if (!value.is_string())
    malformed(where, fmt::format("has a dtype of type {}, not a string", value.type_name()));
  const auto& name = value.get_ref<const std::string&>();
  const std::optional<Dtype> dtype = dtype_from_name(name);
  if (!dtype)
    reject(where, fmt::format("has the unknown dtype {}; convert it to a known one, such as F32",
                              printable(name)));
  return *dtype;
}

std::vector<int64_t> read_shape(const std::string& where, const json& value) {
  if (!value.is_array())
    malformed(where, fmt::format("has a shape of type {}, not an array", value.type_name()));
  std::vector<int64_t> shape;
  for (const json& dimension : value) {
    const uint64_t size = read_integer(where, "shape", dimension);
    if (size > int64_limit)
      malformed(where, fmt::format("has a dimension that overflows 63 bits: {}", size));
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

std::pair<uint64_t, uint64_t> read_offsets(const std::string& where, const json& value) {
  if (!value.is_array() || value.size() != 2)
    malformed(where, "has data_offsets that are not an array of two numbers");
  const uint64_t begin = read_integer(where, "data_offsets", value[0]);
  const uint64_t end = read_integer(where, "data_offsets", value[1]);
  if (begin > end)
    malformed(where, fmt::format("has its offsets out of order: begin {}, end {}", begin, end));
  return {begin, end};
}

void check_keys(const std::string& where, const json& member) {
  if (!member.is_object())
    malformed(where, fmt::format("is of type {}, not an object", member.type_name()));
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!member.contains(key)) malformed(where, fmt::format("has no {}", key));
  if (member.size() != 3) malformed(where, "has keys besides dtype, shape and data_offsets");
}

// One tensor of the header; `where` names the file and the tensor.
SafeTensor read_tensor(const std::string& where, const json& member,
                       std::span<const std::byte> data) {
  check_keys(where, member);
  SafeTensor tensor{read_dtype(where, member["dtype"]), read_shape(where, member["shape"]), {}};
  const auto [begin, end] = read_offsets(where, member["data_offsets"]);
  const std::optional<uint64_t> expected = byte_count(tensor.dtype, tensor.shape);
  if (!expected)
    malformed(where, fmt::format("has the shape {}, which overflows 63 bits of bytes",
                                 printable(tensor.shape)));
  if (*expected != end - begin)
    malformed(where,
              fmt::format("has {} bytes at [{}, {}], {} of shape {} needs {}", end - begin, begin,
                          end, dtype_name(tensor.dtype), printable(tensor.shape), *expected));
  if (end > data.size())
    reject(where, fmt::format("ends at byte {} of the data, the file has {}; it is truncated, "
                              "restore it from a copy",
                              end, data.size()));
  tensor.data = data.subspan(begin, end - begin);
  return tensor;
}

using TensorMap = std::map<std::string, SafeTensor, std::less<>>;

std::vector<std::string> names_by_data(const TensorMap& tensors) {
  std::vector<const TensorMap::value_type*> entries;
  for (const auto& entry : tensors) entries.push_back(&entry);
  const auto place = [](const auto* entry) {
    const std::span<const std::byte> data = entry->second.data;
    return std::pair(data.data(), data.size());
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const auto* a, const auto* b) { return place(a) < place(b); });
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const auto* entry : entries) names.push_back(entry->first);
  return names;
}

// The format wants the data covered, so that a file cannot hide bytes or give them twice.
void check_coverage(const std::string& where, std::span<const std::byte> data,
                    const TensorMap& tensors, const std::vector<std::string>& names) {
  std::size_t covered = 0;
  for (const std::string& name : names) {
    const std::span<const std::byte> part = tensors.find(name)->second.data;
    const auto begin = static_cast<std::size_t>(part.data() - data.data());
    if (begin != covered)
      malformed(where, fmt::format(
                           "tensor {} begins at byte {} of the data, the one before ends at {}: {}",
                           printable(name), begin, covered,
                           begin < covered ? "they overlap" : "there is a hole"));
    covered += part.size();
  }
  if (covered != data.size())
    reject(where, fmt::format("the tensors end at byte {} of the data, the file has {}; it has "
                              "bytes of something else at the end, restore it from a copy",
                              covered, data.size()));
}

}  // namespace

std::size_t dtype_size(Dtype dtype) {
  return dtype_table.at(static_cast<std::size_t>(dtype)).size;
}

std::string_view dtype_name(Dtype dtype) {
  return dtype_table.at(static_cast<std::size_t>(dtype)).name;
}

void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       const SafeTensorMetadata& metadata) {
  check_tensors(file, tensors);
  const std::string header = make_header(file, tensors, metadata);
  const uint64_t length = header.size();
  AtomicFile output(file);
  output.write(&length, length_bytes);
  output.write(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) output.write(tensor.data.data(), tensor.data.size());
  output.commit();
}

std::string safetensors_bytes(const std::filesystem::path& where,
                              std::span<const NamedTensor> tensors,
                              const SafeTensorMetadata& metadata) {
  check_tensors(where, tensors);
  const std::string header = make_header(where, tensors, metadata);
  const uint64_t length = header.size();
  std::size_t size = length_bytes + header.size();
  for (const auto& [name, tensor] : tensors) size += tensor.data.size();
  std::string bytes;
  bytes.reserve(size);
  bytes.append(reinterpret_cast<const char*>(&length), length_bytes);
  bytes += header;
  for (const auto& [name, tensor] : tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return bytes;
}

SafeTensorFile::SafeTensorFile(const std::filesystem::path& file)
    : SafeTensorFile(from_bytes(read_file(file), file.string())) {}

SafeTensorFile SafeTensorFile::from_bytes(std::string bytes, std::string where) {
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  return {{kept, std::as_bytes(std::span(*kept)).data()}, kept->size(), std::move(where)};
}

SafeTensorFile SafeTensorFile::map(const std::filesystem::path& file) {
  MappedFile mapped = map_file(file);
  return {std::move(mapped.data), mapped.size, file.string()};
}

SafeTensorFile::SafeTensorFile(std::shared_ptr<const std::byte> bytes, std::size_t size,
                               std::string where)
    : where_(std::move(where)), bytes_(std::move(bytes)) {
  const std::string_view all(reinterpret_cast<const char*>(bytes_.get()), size);
  const std::string_view header = find_header(where_, all);
  const auto data = std::span(bytes_.get(), size).subspan(length_bytes + header.size());
  const json document = parse_header(where_, header);
  for (const auto& [name, member] : document.items()) {
    if (name == metadata_key)
      metadata_ = read_metadata(where_, member);
    else
      tensors_.emplace(
          name, read_tensor(fmt::format("{}: tensor {}", where_, printable(name)), member, data));
  }
  names_ = names_by_data(tensors_);
  check_coverage(where_, data, tensors_, names_);
}

const SafeTensor& SafeTensorFile::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    reject(where_, fmt::format("has no tensor {} among its {}; check that the file belongs to this "
                               "model",
                               printable(name), tensors_.size()));
  return found->second;
}

}  // namespace rotrnn
