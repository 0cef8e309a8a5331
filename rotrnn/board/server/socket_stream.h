#pragma once

#include <httplib.h>

#include <chrono>
#include <string>

namespace rotrnn::board {

/// A connection with limits on the whole of a request: so many bytes in, so much time for both
/// directions. httplib's own timeouts begin anew with every byte, and it reads headers without end.
class SocketStream : public httplib::Stream {
 public:
  explicit SocketStream(socket_t socket);

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  /// Waits for the first byte of a request; false when none comes in time.
  bool wait() const;

 private:
  using Clock = std::chrono::steady_clock;
  bool wait_for(short events, Clock::time_point until) const;
  bool fill();

  socket_t socket_;
  Clock::time_point begin_;
  size_t received_ = 0, at_ = 0;
  std::string buffer_;  // httplib reads single bytes
};

}  // namespace rotrnn::board
