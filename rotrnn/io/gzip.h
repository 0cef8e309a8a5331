#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace rotrnn {

/// Whether bytes start as a gzip file does.
bool is_gzip(std::string_view bytes);

/// Unpacks gzip data (RFC 1952) piece by piece, so that nothing is made larger than what is asked
/// for; several members in a row are one stream. `packed` must outlive the object.
class GzipSource {
 public:
  /// `name` is for messages.
  GzipSource(std::string_view packed, std::string name);
  ~GzipSource();
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  /// Fills `out` with the next `size` bytes; returns fewer only at the end, whose checksum has been
  /// checked then. std::runtime_error with the offset in the packed data when they are damaged.
  std::size_t read(char* out, std::size_t size);

  /// More bytes than the packed ones can hold: deflate needs at least a bit for 129 bytes.
  std::size_t bound() const { return packed_.size() * 1032 + 1; }

 private:
  struct Stream;
  [[noreturn]] void fail(const std::string& what) const;

  std::string_view packed_;
  std::string name_;
  std::size_t used_ = 0;  // of the packed bytes
  bool ended_ = false;    // at the end of a member
  std::unique_ptr<Stream> stream_;
};

}  // namespace rotrnn
