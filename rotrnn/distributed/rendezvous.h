#pragma once

#include <functional>
#include <optional>
#include <string>

namespace rotrnn {

/// Which of how many processes this one is, and where they meet.
struct Rendezvous {
  int rank = 0, size = 1;
  std::string master;         // host or address of rank 0
  int port = 0;               // where rank 0 or the launcher keeps the store
  bool serves_store = false;  // this process has to open the store itself
  std::string round;          // distinguishes the attempts of a launcher that restarts
};

/// A variable of the environment, if it is set and not empty.
using Variables = std::function<std::optional<std::string>(const char* name)>;

/// The environment of this process.
Variables environment();

/// Reads what a launcher has set: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
/// (torchrun, `rotrnn launch`), OMPI_COMM_WORLD_* (mpirun) or SLURM_* (srun), in this order.
/// Without any of them the process is alone. std::invalid_argument when they are set by halves or
/// contradict each other.
Rendezvous find_rendezvous(const Variables& variables);

/// The first host of a Slurm list such as "gpu[03-07,12],login1".
std::string first_host(const std::string& list);

}  // namespace rotrnn
