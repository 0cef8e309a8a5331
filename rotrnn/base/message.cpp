#include "rotrnn/base/message.h"

#include <cstdio>

namespace rotrnn {

void tell_text(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace rotrnn
