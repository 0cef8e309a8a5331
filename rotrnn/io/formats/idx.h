#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// IDX, the format of the MNIST files: two zero bytes, a type code, the number of dimensions, every
// dimension as 32 bits with the highest byte first, then the values in row-major order.

namespace rotrnn {

/// An array of unsigned bytes.
struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;  // as many as the product of the shape
};

/// Reads the content of an IDX file with `dimensions` dimensions of unsigned bytes, packed by gzip
/// or not. Anything else, and a byte too few or too many, throws std::runtime_error
/// `name: offset N: ...`; no memory is taken for sizes that the content cannot hold.
IdxArray parse_idx(std::string_view content, const std::string& name, std::size_t dimensions);

/// Reads a file.
IdxArray read_idx(const std::filesystem::path& file, std::size_t dimensions);

}  // namespace rotrnn
