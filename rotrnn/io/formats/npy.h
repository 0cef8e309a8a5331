#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// .npy, the file format of NumPy's arrays: a magic, a version, the length of a header, the header
// as a Python dictionary, then the values.

namespace rotrnn {

/// An array of booleans, integers or floats of 2 to 8 bytes, of any byte order, row by row (C) or
/// column by column (Fortran); versions 1.0 to 3.0.
class NpyArray {
 public:
  /// Takes the content of a file. Anything else, and a byte too few or too many, throws
  /// std::runtime_error `name: offset N: ...`; no memory is taken for sizes that the content cannot
  /// hold.
  NpyArray(std::string content, std::string name);

  const std::vector<int64_t>& shape() const { return shape_; }
  /// The number of values.
  int64_t size() const { return size_; }
  /// Rows along the first dimension, and values in each; a single value is one row.
  int64_t rows() const { return shape_.empty() ? 1 : shape_[0]; }
  int64_t row_size() const { return row_size_; }
  /// False for booleans and integers.
  bool is_float() const { return kind_ == 'f'; }
  const std::string& name() const { return name_; }

  /// Copies a row into row_size() numbers, its last dimension running fastest whatever the order in
  /// the file. What single precision cannot hold becomes infinite; NaN stays.
  void copy_row(int64_t row, float* out) const;

  /// All values as integers, the last dimension running fastest. Floats that are not whole, and
  /// numbers beyond 64 bits, throw std::runtime_error.
  std::vector<int64_t> integers() const;

  /// All values as numbers, the last dimension running fastest.
  std::vector<double> numbers() const;

 private:
  void read_header();
  void check_size();
  template <typename Visit>
  void visit_row(int64_t row, const Visit& visit) const;
  [[noreturn]] void fail(std::size_t offset, const std::string& what) const;

  std::string content_, name_;
  std::vector<int64_t> shape_, strides_;  // in values
  int64_t size_ = 0, row_size_ = 0;
  char kind_ = 'f';  // 'b', 'i', 'u', 'f'
  int bytes_ = 4;
  bool swapped_ = false;
  std::size_t data_ = 0;  // where the values start
};

/// Reads a file.
NpyArray read_npy(const std::filesystem::path& file);

/// A shape as NumPy writes it: (3, 4).
std::string npy_shape(std::span<const int64_t> shape);

/// The bytes that numpy.save writes for an array in row-major order; `values` are as many as the
/// product of `shape`.
std::string npy_bytes(std::span<const int64_t> shape, std::span<const float> values);
std::string npy_bytes(std::span<const int64_t> shape, std::span<const int64_t> values);

}  // namespace rotrnn
