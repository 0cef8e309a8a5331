#include "rotrnn/io/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace rotrnn {

MappedFile map_file(const std::filesystem::path& file) {
  const auto refuse = [&](const char* reason) {
    throw std::runtime_error(
        fmt::format("{}: cannot read: {}; check the path", file.string(), reason));
  };
  // Without O_NONBLOCK a pipe with no writer would block here for ever.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) refuse(std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  const int error = errno;
  MappedFile mapped;
  void* at = MAP_FAILED;
  if (known && S_ISREG(status.st_mode)) {
    mapped.size = static_cast<size_t>(status.st_size);
    if (mapped.size > 0) at = ::mmap(nullptr, mapped.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int map_error = errno;
  ::close(descriptor);
  if (!known) refuse(std::strerror(error));
  if (!S_ISREG(status.st_mode))
    refuse(S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file");
  if (mapped.size == 0) return mapped;
  if (at == MAP_FAILED) refuse(std::strerror(map_error));
  mapped.data = {static_cast<const std::byte*>(at), [size = mapped.size](const std::byte* p) {
                   ::munmap(const_cast<std::byte*>(p), size);
                 }};
  return mapped;
}

}  // namespace rotrnn
