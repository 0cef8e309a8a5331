#include "rotrnn/base/message.h"

#include <cstdio>

namespace rotrnn {

void write_message(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace rotrnn
