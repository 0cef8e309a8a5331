#include "rotrnn/io/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace rotrnn {
namespace {

// The examples of RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up, down;
  for (char c = 0; c < 32; ++c) {
    up += c;
    down += static_cast<char>(31 - c);
  }
  EXPECT_EQ(crc32c(up), 0x46dd794eu);
  EXPECT_EQ(crc32c(down), 0x113fdb5cu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

}  // namespace
}  // namespace rotrnn
