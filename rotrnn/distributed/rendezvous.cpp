#include "rotrnn/distributed/rendezvous.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

namespace rotrnn {
namespace {

constexpr int kDefaultPort = 29500;  // torchrun's

[[noreturn]] void wrong(const std::string& text) {
  throw std::invalid_argument("environment: " + text);
}

std::optional<int64_t> number(const Variables& get, const char* name, int64_t low, int64_t high) {
  const auto text = get(name);
  if (!text) return {};
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < low || value > high) {
    wrong(fmt::format("{} is \"{}\"; it must be a number from {} to {}", name, *text, low, high));
  }
  return value;
}

struct Ranks {
  int64_t rank = 0, size = 1;
};

// A pair of variables of which both or none must be there.
std::optional<Ranks> pair(const Variables& get, const char* rank_name, const char* size_name) {
  constexpr int64_t kMost = 1 << 16;
  const auto rank = number(get, rank_name, 0, kMost), size = number(get, size_name, 1, kMost);
  if (!rank && !size) return {};
  if (!rank || !size) {
    wrong(fmt::format("{} is set but {} is not; set both, or neither to train in one process",
                      rank ? rank_name : size_name, rank ? size_name : rank_name));
  }
  if (*rank >= *size) {
    wrong(fmt::format("{} is {} but {} is {}; ranks count from 0 to {}", rank_name, *rank,
                      size_name, *size, *size - 1));
  }
  return Ranks{*rank, *size};
}

// A batch script has the variables of its first task too, but only srun makes steps.
std::optional<Ranks> slurm(const Variables& get) {
  if (get("SLURM_JOB_ID") && !get("SLURM_STEP_ID")) return {};
  if (!get("SLURM_PROCID")) return {};
  return pair(get, "SLURM_PROCID",
              get("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
}

void agree(const Ranks& ours, const Ranks& theirs, const char* what) {
  if (ours.rank == theirs.rank && ours.size == theirs.size) return;
  wrong(fmt::format(
      "RANK and WORLD_SIZE say rank {} of {}, {} say rank {} of {}; unset what does not hold",
      ours.rank, ours.size, what, theirs.rank, theirs.size));
}

// Jobs that share a machine should not share a port.
int port_of(const Variables& get, const char* job_variable) {
  if (const auto port = number(get, "MASTER_PORT", 1, 65535)) return static_cast<int>(*port);
  const auto job = get(job_variable);
  if (!job) return kDefaultPort;
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const unsigned char byte : *job) hash = (hash ^ byte) * 16777619u;
  return 20000 + static_cast<int>(hash % 10000);
}

}  // namespace

Variables environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return {};
    return value;
  };
}

std::string first_host(const std::string& list) {
  const auto bad = [&] {
    wrong(
        fmt::format("the list of hosts \"{}\" is not understood; set MASTER_ADDR to the host of "
                    "rank 0",
                    list));
  };
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const size_t close = list.find(']', i);
    const size_t end = list.find_first_of("-,]", i);
    if (close == std::string::npos || end == i + 1) bad();
    host += list.substr(i + 1, end - i - 1);
    i = close;
  }
  if (host.empty() || host.find_first_of("[] \t") != std::string::npos) bad();
  return host;
}

Rendezvous find_rendezvous(const Variables& get) {
  Rendezvous rendezvous;
  const auto plain = pair(get, "RANK", "WORLD_SIZE");
  const auto mpi = pair(get, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  std::optional<Ranks> used;
  const auto master = get("MASTER_ADDR");
  if (plain) {
    if (mpi) agree(*plain, *mpi, "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE");
    used = plain;
    const auto port = number(get, "MASTER_PORT", 1, 65535);
    if (plain->size > 1 && (!master || !port)) {
      wrong(
          fmt::format("RANK and WORLD_SIZE are set but {} is not; the ranks meet at the host of "
                      "rank 0, such as "
                      "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500",
                      master ? "MASTER_PORT" : "MASTER_ADDR"));
    }
    rendezvous.master = master.value_or("");
    rendezvous.port = static_cast<int>(port.value_or(0));
  } else if (mpi) {
    used = mpi;
    const auto local = number(get, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, mpi->size);
    if (mpi->size > 1 && !master && local.value_or(0) != mpi->size) {
      wrong(
          "mpirun has started ranks on several hosts and MASTER_ADDR is not set; name the host "
          "of rank 0, such as mpirun -x MASTER_ADDR=node1");
    }
    rendezvous.master = master.value_or("127.0.0.1");
    rendezvous.port = port_of(get, "PMIX_NAMESPACE");
  } else if ((used = slurm(get)) && used->size > 1) {
    auto nodes = get("SLURM_STEP_NODELIST");
    if (!nodes) nodes = get("SLURM_NODELIST");
    if (!nodes) nodes = get("SLURM_JOB_NODELIST");
    if (!master && !nodes) {
      wrong(
          "SLURM_PROCID is set but neither SLURM_NODELIST nor MASTER_ADDR is; set MASTER_ADDR to "
          "the host of rank 0");
    }
    rendezvous.master = master ? *master : first_host(*nodes);
    rendezvous.port = port_of(get, "SLURM_JOB_ID");
  }
  if (!used) {
    if (master && get("MASTER_PORT") && !get("SLURM_JOB_ID")) {
      wrong(
          "MASTER_ADDR and MASTER_PORT are set but RANK and WORLD_SIZE are not; set them, or unset "
          "all to train in one process");
    }
    return {};
  }
  rendezvous.rank = static_cast<int>(used->rank);
  rendezvous.size = static_cast<int>(used->size);
  // torchrun keeps the store itself, unless it meets by other means.
  rendezvous.serves_store = rendezvous.rank == 0 && get("TORCHELASTIC_USE_AGENT_STORE") != "True";
  rendezvous.round = get("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return rendezvous;
}

}  // namespace rotrnn
