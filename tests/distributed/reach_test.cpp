#include "rotrnn/distributed/reach.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace rotrnn {
namespace {

class Listener {
 public:
  Listener() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(descriptor_, 1), 0);
    socklen_t size = sizeof address;
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~Listener() { ::close(descriptor_); }
  int port;

 private:
  int descriptor_;
};

TEST(Reach, GivesBothEnds) {
  const Listener listener;
  const Reached reached = reach("127.0.0.1", listener.port, 5);
  EXPECT_EQ(reached.local, "127.0.0.1");
  EXPECT_EQ(reached.peer, "127.0.0.1");
  EXPECT_TRUE(is_loopback(reached.local));
  EXPECT_FALSE(is_loopback("10.127.0.1"));
}

TEST(Reach, SaysWhyNot) {
  const int port = free_port();
  try {
    reach("127.0.0.1", port, 0.3);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "Connection refused");
  }
  EXPECT_THROW(reach("no.such.host.invalid", port, 0.3), std::runtime_error);
}

TEST(Reach, FindsAPortInUse) {
  const Listener listener;
  try {
    check_port_is_free(listener.port);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(listener.port)), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("already in use"), std::string::npos);
  }
  EXPECT_NO_THROW(check_port_is_free(free_port()));
}

}  // namespace
}  // namespace rotrnn
