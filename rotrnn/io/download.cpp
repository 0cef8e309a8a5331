#include "rotrnn/io/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "rotrnn/base/fail.h"
#include "rotrnn/base/text/ascii.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/sha.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kProgressBytes = 1 << 20;  // so much more is worth another row of retries

fs::path with_suffix(const fs::path& file, const char* suffix) {
  return file.string() + suffix;
}

// The file that bytes arrive in, locked against another process that fetches the same.
class PartFile {
 public:
  explicit PartFile(fs::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail_with("create");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      fail(path_.string(), "another process is fetching this file; wait for it");
    }
  }
  ~PartFile() { ::close(descriptor_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  int64_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail_with("look at");
    return status.st_size;
  }

  // Both keep an error and say false: libcurl calls them, and nothing may be thrown through it.
  bool truncate() { return ::ftruncate(descriptor_, 0) == 0 || failed(); }
  bool append(const char* bytes, std::size_t size) {
    if (::lseek(descriptor_, 0, SEEK_END) < 0) return failed();
    while (size > 0) {
      const ssize_t count = ::write(descriptor_, bytes, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed();
      bytes += count;
      size -= static_cast<std::size_t>(count);
    }
    return true;
  }

  void check_error() const {
    if (error_ == 0) return;
    errno = error_;
    fail_with("write");
  }

  void flush() const {
    if (::fsync(descriptor_) != 0) fail_with("flush");
  }

 private:
  bool failed() {
    error_ = errno;
    return false;
  }

  [[noreturn]] void fail_with(const char* action) const {
    fail(path_.string(), fmt::format("cannot {}: {}; its folder must exist, be writable and have "
                                     "free space",
                                     action, std::strerror(errno)));
  }

  fs::path path_;
  int descriptor_;
  int error_ = 0;
};

// What distinguishes one version of a server's file from another. Kept beside the part file: bytes
// of two versions must never be put together.
struct Version {
  std::string url, validator;

  static Version load(const fs::path& file) {
    if (!fs::exists(file)) return {};
    const std::string text = read_file(file);
    const std::size_t line = text.find('\n');
    if (line == std::string::npos) return {};
    return {text.substr(0, line), text.substr(line + 1)};
  }

  void save(const fs::path& file) const { write_file_atomically(file, url + "\n" + validator); }
};

int64_t number_after(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  int64_t value = -1;
  if (at != std::string_view::npos) {
    std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  }
  return value;
}

// The headers of a response; those of redirections before it are forgotten.
struct Response {
  long status = 0;
  std::string etag, modified, range;

  void take(std::string_view line) {
    if (line.starts_with("HTTP/")) {
      *this = {};
      status = static_cast<long>(number_after(line, ' '));
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string name = ascii_lower(line.substr(0, colon));
    const std::string value(trimmed(line.substr(colon + 1)));
    if (name == "etag") etag = value;
    if (name == "last-modified") modified = value;
    if (name == "content-range") range = value;
  }

  // For If-Range, which does not take weak tags.
  std::string validator() const { return etag.empty() || etag.starts_with("W/") ? modified : etag; }
  int64_t range_start() const { return number_after(range, ' '); }  // "bytes 5-9/10"
  int64_t range_total() const { return number_after(range, '/'); }
};

// One request at a time, with what it needs while libcurl runs.
class Fetch {
 public:
  Fetch(const std::string& url, const fs::path& file, const DownloadOptions& options)
      : url_(url),
        options_(options),
        version_file_(with_suffix(file, ".part.version")),
        part_(with_suffix(file, ".part")),
        curl_(curl_easy_init(), curl_easy_cleanup) {
    if (!curl_) throw std::bad_alloc();
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 10L);
    set(CURLOPT_FAILONERROR, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "rotrnn");
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.connect_seconds));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_seconds));
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_ERRORBUFFER, reason_);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_HEADERFUNCTION, on_header);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_WRITEFUNCTION, on_bytes);
    set(CURLOPT_XFERINFODATA, this);
    set(CURLOPT_XFERINFOFUNCTION, on_progress);
  }

  // Until the part file is whole. Returns the bytes that it had before.
  int64_t run() {
    const Version known = Version::load(version_file_);
    if (known.url != url_ || known.validator.empty()) restart();
    const int64_t resumed = part_.size();
    int failures = 0;
    for (int64_t mark = resumed;;) {
      if (request()) break;
      if (part_.size() >= mark + kProgressBytes) failures = 0;
      mark = part_.size();
      if (failures++ == options_.retries) {
        fail(url_, fmt::format("{}; {} bytes are kept, run the same again to go on from there",
                               reason(), mark));
      }
      wait(options_.retry_seconds * static_cast<double>(1 << std::min(failures - 1, 6)));
    }
    part_.flush();
    return restarted_ ? 0 : resumed;
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(curl_.get(), option, value) != CURLE_OK) {
      fail(url_, "libcurl refuses a setting; is it built with http and https?");
    }
  }

  // True when the file is whole, false when the same can be tried again.
  bool request() {
    const Version version = Version::load(version_file_);
    start_ = version.validator.empty() ? 0 : part_.size();
    if (start_ == 0) restart();
    const std::string range = fmt::format("{}-", start_),
                      condition = "If-Range: " + version.validator;
    std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(nullptr, curl_slist_free_all);
    if (start_ > 0) headers.reset(curl_slist_append(nullptr, condition.c_str()));
    set(CURLOPT_RANGE, start_ > 0 ? range.c_str() : nullptr);
    set(CURLOPT_HTTPHEADER, headers.get());
    response_ = {};
    started_ = false;
    reason_[0] = '\0';
    result_ = curl_easy_perform(curl_.get());
    part_.check_error();
    if (!problem_.empty()) fail(url_, problem_);
    if (result_ == CURLE_OK) {
      if (!begin()) fail(url_, problem_);  // an empty file never came to on_bytes
      return true;
    }
    if (result_ == CURLE_ABORTED_BY_CALLBACK) {
      fail(url_, fmt::format("stopped; {} bytes are kept, run the same again to go on from there",
                             part_.size()));
    }
    if (start_ > 0 && response_.status == 416) {
      if (response_.range_total() == start_) return true;  // it was whole already
      restart();
      return false;
    }
    if (!may_pass()) fail(url_, reason() + "; " + advice());
    return false;
  }

  // What another attempt may find otherwise.
  bool may_pass() const {
    if (result_ == CURLE_HTTP_RETURNED_ERROR) {
      return response_.status >= 500 || response_.status == 408 || response_.status == 429;
    }
    constexpr CURLcode kMayPass[] = {CURLE_PARTIAL_FILE, CURLE_RECV_ERROR,         CURLE_SEND_ERROR,
                                     CURLE_GOT_NOTHING,  CURLE_OPERATION_TIMEDOUT, CURLE_HTTP2,
                                     CURLE_HTTP2_STREAM};
    return std::find(std::begin(kMayPass), std::end(kMayPass), result_) != std::end(kMayPass);
  }

  std::string reason() const {
    if (result_ == CURLE_HTTP_RETURNED_ERROR) {
      return fmt::format("the server answers with status {}", response_.status);
    }
    std::string text = reason_[0] ? reason_ : curl_easy_strerror(result_);
    if (text.ends_with('.')) text.pop_back();
    return text;
  }

  const char* advice() const {
    return response_.status >= 400
               ? "has the file moved? Give its new address with --url, or get it by hand"
               : "check the address and the network";
  }

  void restart() {
    if (part_.size() > 0) restarted_ = true;
    if (!part_.truncate()) part_.check_error();
    fs::remove(version_file_);
  }

  // At the first byte: from here on bytes belong to the version that this response is of.
  bool begin() {
    if (started_) return true;
    started_ = true;
    if (response_.status == 206) {
      if (start_ > 0 && response_.range_start() == start_) return true;
      problem_ = fmt::format(
          "the server sends the range \"{}\" instead of what follows byte {}; "
          "remove the .part file and run the same again",
          response_.range, start_);
      return false;
    }
    if (response_.status != 200) {
      problem_ = fmt::format("the server answers with status {}; {}", response_.status, advice());
      return false;
    }
    if (start_ > 0) {
      restart();
      start_ = 0;
    }
    // Without one the part cannot be resumed.
    const std::string validator = response_.validator();
    if (!validator.empty()) Version{url_, validator}.save(version_file_);
    return true;
  }

  static std::size_t on_header(char* bytes, std::size_t, std::size_t size, void* self) {
    static_cast<Fetch*>(self)->response_.take({bytes, size});
    return size;
  }

  static std::size_t on_bytes(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& fetch = *static_cast<Fetch*>(self);
    try {
      if (!fetch.begin()) return size + 1;
    } catch (const std::exception& error) {
      fetch.problem_ = error.what();
      return size + 1;  // anything but the size stops it
    }
    return fetch.part_.append(bytes, size) ? size : size + 1;
  }

  static int on_progress(void* self, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
    const auto& fetch = *static_cast<Fetch*>(self);
    if (!fetch.options_.progress) return 0;
    return fetch.options_.progress(fetch.start_ + done, total > 0 ? fetch.start_ + total : 0) ? 0
                                                                                              : 1;
  }

  // In pieces, so that the caller can stop it.
  void wait(double seconds) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::duration<double>(seconds);
    while (clock::now() < end) {
      if (options_.progress && !options_.progress(part_.size(), 0)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  const std::string url_;
  const DownloadOptions& options_;
  const fs::path version_file_;
  PartFile part_;
  std::unique_ptr<CURL, void (*)(CURL*)> curl_;
  char reason_[CURL_ERROR_SIZE] = {};
  CURLcode result_ = CURLE_OK;
  Response response_;
  int64_t start_ = 0;       // bytes that the request leaves out
  bool started_ = false;    // the response has been looked at
  bool restarted_ = false;  // what an earlier attempt had left was of no use
  std::string problem_;
};

std::string recorded_sha256(const fs::path& file) {
  const fs::path record = sha256_record(file);
  if (!fs::exists(record)) return "";
  const std::string text = read_file(record);
  const std::string sum = ascii_lower(std::string_view(text).substr(0, 64));
  const bool hex = sum.size() == 64 && std::all_of(sum.begin(), sum.end(), [](unsigned char c) {
                     return std::isxdigit(c);
                   });
  if (!hex) fail(record.string(), "does not start with a SHA-256; remove it to record a new one");
  return sum;
}

void record_sha256(const fs::path& file, const std::string& sum) {
  write_file_atomically(sha256_record(file),
                        fmt::format("{}  {}\n", sum, file.filename().string()));
}

void check_url(const std::string& url) {
  const std::string start = ascii_lower(url.substr(0, 8));
  if (start.starts_with("http://") || start.starts_with("https://")) return;
  throw std::invalid_argument(
      fmt::format("{}: not an address of http:// or https://; only those are fetched", url));
}

Download verify(const fs::path& file) {
  Download result;
  result.bytes = static_cast<int64_t>(fs::file_size(file));
  result.sha256 = sha256_of_file(file);
  const std::string recorded = recorded_sha256(file);
  if (recorded.empty()) {
    record_sha256(file, result.sha256);  // put there by hand
  } else if (recorded != result.sha256) {
    fail(file.string(),
         fmt::format("has changed since it was fetched: its SHA-256 is {}, {} says {}; remove the "
                     "file to fetch it again, or the record to accept it as it is",
                     result.sha256, sha256_record(file).string(), recorded));
  }
  return result;
}

}  // namespace

fs::path sha256_record(const fs::path& file) {
  return with_suffix(file, ".sha256");
}

Download download(const std::string& url, const fs::path& file, const DownloadOptions& options) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  check_url(url);
  if (fs::exists(file)) return verify(file);
  if (initialised != CURLE_OK) fail(url, "libcurl cannot start; check its set-up");
  if (file.has_parent_path()) fs::create_directories(file.parent_path());

  const fs::path part = with_suffix(file, ".part"), version = with_suffix(file, ".part.version");
  Download result;
  result.fetched = true;
  Fetch fetch(url, file, options);
  try {
    result.resumed = fetch.run();
  } catch (...) {
    std::error_code ignored;
    if (fs::file_size(part, ignored) == 0) fs::remove(part, ignored);
    throw;
  }
  result.bytes = static_cast<int64_t>(fs::file_size(part));
  result.sha256 = sha256_of_file(part);
  const std::string recorded = recorded_sha256(file);
  if (!recorded.empty() && recorded != result.sha256) {
    fs::remove(part);
    fs::remove(version);
    fail(url,
         fmt::format("the server's file has changed: its SHA-256 is {}, {} says {}; it was not "
                     "kept. Remove the record to accept the new file",
                     result.sha256, sha256_record(file).string(), recorded));
  }
  if (recorded.empty()) record_sha256(file, result.sha256);
  fs::rename(part, file);
  fs::remove(version);
  sync_folder(file.has_parent_path() ? file.parent_path() : ".");
  return result;
}

}  // namespace rotrnn
