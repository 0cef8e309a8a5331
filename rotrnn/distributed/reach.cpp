#include "rotrnn/distributed/reach.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rotrnn {
namespace {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int family) : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string numeric(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  // An IPv4 address seen through an IPv6 socket.
  return std::strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
}

// Connects within the time, or gives the reason why not.
int connect_within(int descriptor, const addrinfo& to, Clock::time_point end) {
  timeval limit{};
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now());
  const int64_t micros = std::max<int64_t>(left.count(), 1000);
  limit.tv_sec = micros / 1000000;
  limit.tv_usec = micros % 1000000;
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(descriptor, to.ai_addr, to.ai_addrlen) == 0) return 0;
  return errno == EINPROGRESS ? ETIMEDOUT : errno;
}

// Any-address of IPv6, which takes IPv4 too, or of IPv4 where there is no IPv6.
int bind_any(const Socket& socket, bool six, int port) {
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_any;
  v6.sin6_port = htons(static_cast<uint16_t>(port));
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  const int yes = 1, no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (six) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const auto* address = six ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  return ::bind(socket.get(), address, six ? sizeof v6 : sizeof v4);
}

}  // namespace

Reached reach(const std::string& host, int port, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  std::string reason;
  do {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
    if (error != 0) {
      reason = gai_strerror(error);
    } else {
      const Addresses addresses(list, freeaddrinfo);
      for (const addrinfo* to = list; to != nullptr; to = to->ai_next) {
        const Socket socket(to->ai_family);
        const int failed = connect_within(socket.get(), *to, end);
        if (failed != 0) {
          reason = std::strerror(failed);
          continue;
        }
        sockaddr_storage local{};
        socklen_t size = sizeof local;
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size);
        return {numeric(reinterpret_cast<sockaddr*>(&local), size),
                numeric(to->ai_addr, to->ai_addrlen)};
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (Clock::now() < end);
  throw std::runtime_error(reason);
}

void check_port_is_free(int port) {
  for (const bool six : {true, false}) {
    const Socket socket(six ? AF_INET6 : AF_INET);
    if (socket.get() < 0) continue;
    if (bind_any(socket, six, port) == 0 && ::listen(socket.get(), 1) == 0) return;
    if (errno == EADDRINUSE || errno == EACCES) {
      throw std::runtime_error(
          fmt::format("MASTER_PORT {} cannot be opened on this machine: {}; choose another", port,
                      std::strerror(errno)));
    }
  }
}

int free_port() {
  const Socket socket(AF_INET);
  if (bind_any(socket, false, 0) != 0) {
    throw std::runtime_error(fmt::format("no port is free: {}", std::strerror(errno)));
  }
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

std::string machine_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  return in >> id ? id : host_name();
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name[0] == '\0' ? "unnamed" : name;
}

}  // namespace rotrnn
