#pragma once

#include <string>

namespace rotrnn {

/// The two ends of a connection, as numeric addresses.
struct Reached {
  std::string local, peer;
};

/// Connects to a host, trying again until `seconds` have passed. std::runtime_error reports what
/// kept it from answering.
Reached reach(const std::string& host, int port, double seconds);

/// std::runtime_error when something listens on the port of this machine already.
void check_port_is_free(int port);

/// A port of this machine that nothing uses now.
int free_port();

/// Whether an address is of this machine alone.
bool is_loopback(const std::string& address);

/// Identifies this machine: the same for all processes on one kernel.
std::string machine_id();

/// Name of the machine, for people.
std::string host_name();

}  // namespace rotrnn
