#pragma once

#include <cstdint>
#include <string_view>

namespace rotrnn {

/// CRC-32C (Castagnoli), the checksum of iSCSI and of TFRecord files.
uint32_t crc32c(std::string_view bytes);

}  // namespace rotrnn
