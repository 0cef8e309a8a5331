#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rotrnn::test {

/// The bytes of an IDX file of unsigned bytes.
inline std::string idx_bytes(const std::vector<uint32_t>& shape, const std::string& data) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t n : shape) {
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(n >> shift);
  }
  return out + data;
}

/// Packed as gzip(1) does.
inline std::string gzipped(const std::string& bytes) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

}  // namespace rotrnn::test
