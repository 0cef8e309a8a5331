#pragma once

#include <memory>
#include <string>

#include "rotrnn/board/api.h"

namespace rotrnn::board {

/// Where to serve.
struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 6060;     // 0: any that is free
  bool token = false;  // ask for one on this machine too; elsewhere it is always asked for
};

/// The board as a web server: pages from the program, JSON from an Api, nothing else. It only
/// answers, by GET and HEAD. On the loopback it answers to names of this machine alone, so that no
/// foreign page can reach it by a name of its own; elsewhere it asks for a random token.
class Server {
 public:
  /// Binds the port; std::runtime_error when it is taken or the address is not of this machine.
  Server(Api& api, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  /// What to open, with the token when there is one.
  std::string address() const;
  /// Empty: none is asked for.
  const std::string& token() const;

  /// Serves until stop() is called, from another thread.
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether an address is one of the loopback.
bool is_loopback(const std::string& host);

/// Whether a Host header names this machine by a name that only it has.
bool is_local_name(const std::string& host_header);

}  // namespace rotrnn::board
