#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace rotrnn {

struct DownloadOptions {
  int64_t connect_seconds = 30;  // to reach the server
  int64_t stall_seconds = 60;    // without a byte, before the connection counts as cut
  int retries = 5;               // after a cut connection, in a row without progress
  double retry_seconds = 0.5;    // before the first retry, twice as long before each that follows

  /// Called now and then with the bytes that are there and how many there will be (0: unknown);
  /// false stops the download, which can be resumed.
  std::function<bool(int64_t done, int64_t total)> progress;
};

struct Download {
  bool fetched = false;  // false: the file was there
  int64_t resumed = 0;   // bytes that an earlier attempt had left
  int64_t bytes = 0;     // of the file
  std::string sha256;
};

/// Makes sure that `file` is there: fetches it from `url` (http or https) unless it is. Bytes
/// arrive in `file`.part, which a later call goes on with if the server's file is still the same;
/// `file` appears whole. Its SHA-256 is recorded in `file`.sha256 (a line as sha256sum writes it)
/// and checked ever after, also when it is fetched again. std::runtime_error says what went wrong
/// and what to do; nothing waits forever.
Download download(const std::string& url, const std::filesystem::path& file,
                  const DownloadOptions& options = {});

/// The file that holds the SHA-256 of `file`.
std::filesystem::path sha256_record(const std::filesystem::path& file);

}  // namespace rotrnn
