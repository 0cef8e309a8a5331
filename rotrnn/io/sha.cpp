#include "rotrnn/io/sha.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace rotrnn {
namespace {

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    check(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
  }

  void add(std::string_view bytes) {
    check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  std::string hex() {
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), sum, &size) == 1);
    std::string out;
    for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", sum[i]);
    return out;
  }

 private:
  static void check(bool done) {
    if (!done) throw std::runtime_error("OpenSSL cannot compute a SHA sum; check its set-up");
  }

  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

std::string hex_of(const EVP_MD* kind, std::string_view bytes) {
  Digest digest(kind);
  digest.add(bytes);
  return digest.hex();
}

std::string hex_of_file(const EVP_MD* kind, const std::filesystem::path& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(file.c_str(), "rbe"),
                                                              std::fclose);
  auto fail = [&] {
    throw std::runtime_error(fmt::format("{}: cannot read: {}; check the path and its permissions",
                                         file.string(), std::strerror(errno)));
  };
  if (!input) fail();
  Digest digest(kind);
  std::vector<char> piece(1 << 20);
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), input.get())) {
    digest.add({piece.data(), size});
  }
  if (std::ferror(input.get())) fail();
  return digest.hex();
}

}  // namespace

std::string sha1_hex(std::string_view bytes) {
  return hex_of(EVP_sha1(), bytes);
}

std::string sha256_hex(std::string_view bytes) {
  return hex_of(EVP_sha256(), bytes);
}

std::string sha1_of_file(const std::filesystem::path& file) {
  return hex_of_file(EVP_sha1(), file);
}

std::string sha256_of_file(const std::filesystem::path& file) {
  return hex_of_file(EVP_sha256(), file);
}

}  // namespace rotrnn
