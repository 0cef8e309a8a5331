#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rotrnn {

// The safetensors format: 8 bytes with the length N of the header (little-endian), N bytes of JSON
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//    "__metadata__": {"key": "value", ...}}
// and the data (little-endian, row-major), which the tensors cover without gap or overlap.

/// The element types of the format, by their names in the file in lower case (`boolean`: BOOL).
enum class Dtype { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

/// Bytes of one element.
std::size_t dtype_size(Dtype dtype);

/// The name in the file, such as "F32".
std::string_view dtype_name(Dtype dtype);

/// A tensor as it is in the file; shape {} is a scalar, and `data` may be unaligned for its type.
struct SafeTensor {
  Dtype dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// A tensor to be written.
struct NamedTensor {
  std::string name;
  SafeTensor tensor;
};

/// Text about the file as a whole.
using SafeTensorMetadata = std::map<std::string, std::string>;

/// Writes the tensors in the given order, atomically; equal arguments give equal bytes.
void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       const SafeTensorMetadata& metadata = {});

/// The bytes of such a file; `where` stands for its path in messages.
std::string safetensors_bytes(const std::filesystem::path& where,
                              std::span<const NamedTensor> tensors,
                              const SafeTensorMetadata& metadata = {});

/// A safetensors file in memory, checked completely on construction: anything that breaks the
/// format is a std::runtime_error that names the file.
class SafeTensorFile {
 public:
  /// Reads `file`.
  explicit SafeTensorFile(const std::filesystem::path& file);

  /// The same without reading what is not looked at: the data are pages of the file.
  static SafeTensorFile map(const std::filesystem::path& file);

  /// Reads the contents of a file from memory; `where` stands for the path in error messages.
  static SafeTensorFile from_bytes(std::string bytes, std::string where);

  /// The names of the tensors, in the order of their data.
  const std::vector<std::string>& names() const { return names_; }

  /// True if there is a tensor of that name.
  bool contains(std::string_view name) const { return tensors_.contains(name); }

  /// The tensor of that name; its data live as long as this file or a copy of it.
  const SafeTensor& at(std::string_view name) const;

  /// The text about the file as a whole.
  const SafeTensorMetadata& metadata() const { return metadata_; }

  /// The path, for messages.
  const std::string& where() const { return where_; }

 private:
  SafeTensorFile(std::shared_ptr<const std::byte> data, std::size_t size, std::string where);

  std::string where_;
  // Shared, so that the spans into it stay valid in copies and moves of this object.
  std::shared_ptr<const std::byte> bytes_;
  std::map<std::string, SafeTensor, std::less<>> tensors_;
  std::vector<std::string> names_;
  SafeTensorMetadata metadata_;
};

}  // namespace rotrnn
