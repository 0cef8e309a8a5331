#include "rotrnn/board/server/socket_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rotrnn::board {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // of a request
constexpr auto kToRead = std::chrono::seconds(5);
constexpr auto kToWrite = std::chrono::seconds(60);

}  // namespace

SocketStream::SocketStream(socket_t socket) : socket_(socket), begin_(Clock::now()) {}

bool SocketStream::wait_for(short events, Clock::time_point until) const {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waiting{socket_, events, 0};
    const int got = ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left)));
    if (got < 0 && errno == EINTR) continue;
    return got > 0;
  }
}

bool SocketStream::is_readable() const {
  return at_ < buffer_.size() || wait_for(POLLIN, begin_ + kToRead);
}

bool SocketStream::is_writable() const {
  return wait_for(POLLOUT, begin_ + kToWrite);
}

bool SocketStream::wait() const {
  return is_readable();
}

bool SocketStream::fill() {
  if (received_ >= kMostBytes || !wait_for(POLLIN, begin_ + kToRead)) return false;
  buffer_.resize(4096);
  at_ = 0;
  ssize_t got;
  do got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  buffer_.resize(got > 0 ? static_cast<size_t>(got) : 0);
  received_ += buffer_.size();
  return got > 0;
}

ssize_t SocketStream::read(char* to, size_t size) {
  if (at_ == buffer_.size() && !fill()) return -1;
  const size_t count = std::min(size, buffer_.size() - at_);
  std::memcpy(to, buffer_.data() + at_, count);
  at_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t SocketStream::write(const char* from, size_t size) {
  if (!is_writable()) return -1;
  ssize_t sent;
  do sent = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  // This is the only writer since the poll, so "try again" does not happen for long.
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return sent;
}

void SocketStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void SocketStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace rotrnn::board
