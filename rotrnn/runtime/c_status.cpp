#include "rotrnn/runtime/c_status.h"

#include <algorithm>
#include <cstring>

namespace rotrnn::runtime {
namespace {

// Plain memory: it must take a message when there is none left, and outlive every thread's locals.
thread_local char message_of_thread[1024] = "";

}  // namespace

rotrnn_status fail(rotrnn_status status, const char* message) noexcept {
  size_t size = std::min(std::strlen(message), sizeof message_of_thread - 1);
  // Not inside a character of a name that was in the message.
  if (size < std::strlen(message)) {
    while (size > 0 && (message[size] & 0xC0) == 0x80) --size;
  }
  std::memcpy(message_of_thread, message, size);
  message_of_thread[size] = '\0';
  return status;
}

const char* last_error() noexcept {
  return message_of_thread;
}

}  // namespace rotrnn::runtime
