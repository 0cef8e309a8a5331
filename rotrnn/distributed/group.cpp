#include "rotrnn/distributed/group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "rotrnn/base/message.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/distributed/c10d_library.h"
#include "rotrnn/distributed/cpus.h"
#include "rotrnn/distributed/reach.h"
#include "rotrnn/distributed/watch.h"

namespace rotrnn {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Up to so many bytes the time of a message is that of its packets, not of its bytes.
constexpr size_t kSmall = 1 << 16;
// How often a waiting process looks whether the group is lost.
constexpr int64_t kPollMs = 250;

int64_t ms_of(double seconds) {
  return static_cast<int64_t>(seconds * 1000);
}

// The store cannot be reached any more.
struct StoreLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A connection to the store.
class Store {
 public:
  Store(const RotrnnC10d& c10d, const Rendezvous& rendezvous, double timeout, bool serves)
      : c10d_(c10d),
        store_(c10d.open_store(rendezvous.master.c_str(), rendezvous.port, serves, rendezvous.size,
                               ("rotrnn/" + rendezvous.round).c_str(), ms_of(timeout))) {
    if (store_ != nullptr) return;
    throw std::runtime_error(fmt::format("rank {}: the store at {}:{} cannot be opened: {}",
                                         rendezvous.rank, rendezvous.master, rendezvous.port,
                                         c10d.error()));
  }
  ~Store() { c10d_.close_store(store_); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(const std::string& key, const std::string& value) {
    check(c10d_.set(store_, key.c_str(), value.data(), value.size()));
  }
  std::optional<std::string> get(const std::string& key) {
    const char* value = nullptr;
    size_t size = 0;
    if (check(c10d_.get(store_, key.c_str(), &value, &size)) == 0) return {};
    return std::string(value, size);
  }
  std::string claim(const std::string& key, const std::string& value) {
    const char* stands = nullptr;
    size_t size = 0;
    check(c10d_.claim(store_, key.c_str(), value.data(), value.size(), &stands, &size));
    return {stands, size};
  }
  int64_t add(const std::string& key, int64_t amount) {
    int64_t sum = 0;
    check(c10d_.add(store_, key.c_str(), amount, &sum));
    return sum;
  }
  RotrnnStore* handle() { return store_; }

 private:
  int check(int result) {
    if (result < 0) throw StoreLost(c10d_.error());
    return result;
  }

  const RotrnnC10d& c10d_;
  RotrnnStore* store_;
};

Board board_of(const std::shared_ptr<Store>& store) {
  Board board;
  board.write = [store](const std::string& key, const std::string& value) {
    store->set(key, value);
  };
  board.read = [store](const std::string& key) { return store->get(key); };
  board.claim = [store](const std::string& key, const std::string& value) {
    return store->claim(key, value);
  };
  return board;
}

// What a process reports of itself when it joins.
struct Member {
  int size = 0;
  long process = 0;
  std::string local, master;  // addresses: of this process, and of rank 0 as it sees it
  std::string machine, cpus, host;

  std::string text() const {
    return fmt::format("{} {} {} {} {} {} {}", size, process, local, master, machine,
                       cpus.empty() ? "-" : cpus, host);
  }
  static Member parse(const std::string& text) {
    Member m;
    std::istringstream in(text);
    in >> m.size >> m.process >> m.local >> m.master >> m.machine >> m.cpus;
    std::getline(in >> std::ws, m.host);
    return m;
  }
};

constexpr char kMissing[] = "missing";

std::string member_key(int rank) {
  return fmt::format("member/{}", rank);
}

Reached reach_master(const Rendezvous& rendezvous, double timeout) {
  try {
    return reach(rendezvous.master, rendezvous.port, timeout);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("rank {} could not reach rank 0 at {}:{} within {:g} s: {}; is rank 0 running "
                    "there, and is "
                    "the port open? MASTER_ADDR and MASTER_PORT say where",
                    rendezvous.rank, rendezvous.master, rendezvous.port, timeout, error.what()));
  }
}

// Who has not come, for all to read. Whoever keeps the store stays until they have.
[[noreturn]] void miss(const Rendezvous& rendezvous, Store& store, double timeout) {
  std::string missing;
  for (int rank = 0; rank < rendezvous.size; ++rank) {
    if (store.get(member_key(rank))) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  const std::string text = fmt::format("of {} ranks these did not come within {:g} s: {}",
                                       rendezvous.size, timeout, missing);
  store.set(kMissing, text);
  if (rendezvous.serves_store) std::this_thread::sleep_for(std::chrono::seconds(1));
  throw std::runtime_error(text);
}

// Waits until every rank has reported itself.
std::vector<Member> gather_members(const Rendezvous& rendezvous, Store& store, const Member& self,
                                   double timeout) {
  if (store.add(fmt::format("claimed/{}", rendezvous.rank), 1) != 1) {
    throw std::runtime_error(fmt::format(
        "two processes are rank {} of the group at {}:{}; each needs its own RANK, and each job "
        "its own MASTER_PORT",
        rendezvous.rank, rendezvous.master, rendezvous.port));
  }
  store.set(member_key(rendezvous.rank), self.text());
  const auto end = Clock::now() + milliseconds(ms_of(timeout));
  std::vector<Member> members;
  for (int rank = 0; rank < rendezvous.size; ++rank) {
    auto text = store.get(member_key(rank));
    while (!text) {
      if (const auto missing = store.get(kMissing)) throw std::runtime_error(*missing);
      if (Clock::now() > end) miss(rendezvous, store, timeout);
      std::this_thread::sleep_for(milliseconds(20));
      text = store.get(member_key(rank));
    }
    members.push_back(Member::parse(*text));
    if (members.back().size != rendezvous.size) {
      throw std::runtime_error(fmt::format(
          "rank {} is one of {} processes and rank {} one of {}; WORLD_SIZE must be the "
          "same for all",
          rank, members.back().size, rendezvous.rank, rendezvous.size));
    }
  }
  return members;
}

// The address that others reach this process at. On the host of rank 0 its name often leads to a
// loopback address, which is of no use elsewhere: there, what others call it.
std::string own_address(const Member& self, const std::vector<Member>& members) {
  if (!is_loopback(self.local)) return self.local;
  for (const Member& other : members) {
    if (!is_loopback(other.local) && !is_loopback(other.master)) return other.master;
  }
  return self.local;
}

// Connects every process with every other. On its own thread, which is left behind when it
// does not come back: there is no other way to give up.
RotrnnPeers* connect(const RotrnnC10d& c10d, const Rendezvous& rendezvous,
                     const std::shared_ptr<Store>& store, const std::string& address,
                     double timeout) {
  auto promise = std::make_shared<std::promise<RotrnnPeers*>>();
  auto future = promise->get_future();
  std::thread([&c10d, store, address, promise, rank = rendezvous.rank, size = rendezvous.size] {
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    if (interface != nullptr && *interface == '\0') interface = nullptr;
    RotrnnDevice* device = nullptr;
    {
      // The device's thread spins while another holds a connection's lock: were it to push that one
      // aside, it would spin until its turn is over, a few milliseconds.
      const Humble humble;
      device = c10d.open_device(interface, address.c_str());
    }
    RotrnnPeers* peers = device ? c10d.connect(store->handle(), device, rank, size) : nullptr;
    if (peers == nullptr) {
      promise->set_exception(std::make_exception_ptr(std::runtime_error(c10d.error())));
    }
    if (device != nullptr) c10d.close_device(device);
    if (peers != nullptr) promise->set_value(peers);
  }).detach();
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format(
        "rank {} ({}) met the others but could not connect to all of them: {}; GLOO_SOCKET_IFNAME "
        "names the network interface to use",
        rendezvous.rank, address, why));
  };
  if (future.wait_for(std::chrono::duration<double>(timeout)) != std::future_status::ready) {
    fail(fmt::format("no answer within {:g} s", timeout));
  }
  try {
    return future.get();
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return nullptr;
}

WatchLimits limits_of(double timeout) {
  WatchLimits limits;
  limits.silence = timeout;
  limits.beat = std::min(limits.beat, timeout / 10);
  limits.suspicion = std::min(limits.suspicion, timeout);
  limits.abandoned = std::min(limits.abandoned, timeout);
  return limits;
}

}  // namespace

struct Group::Impl {
  Impl(const RotrnnC10d& table, const Rendezvous& where) : c10d(table), rendezvous(where) {}
  ~Impl() {
    watch.reset();
    if (peers != nullptr) c10d.close_peers(peers);
  }

  const RotrnnC10d& c10d;
  const Rendezvous rendezvous;
  std::shared_ptr<Store> store;  // of the working thread; Watch has a connection of its own
  RotrnnPeers* peers = nullptr;
  std::unique_ptr<Watch> watch;
  std::vector<double> gathered;  // here, since a lost message may still write to it
  int threads = 1;
  bool lost = false;

  [[noreturn]] void give_up(const std::string& verdict) {
    lost = true;
    if (rendezvous.serves_store) watch->linger();
    throw GroupLost(verdict);
  }

  // Starts an operation and waits for its end, or for the verdict that there will be none.
  template <class Start>
  void run(const Start& start, bool patient = false) {
    if (lost) throw GroupLost(watch->verdict());
    watch->enter(patient);
    RotrnnWork* work = start();
    if (work == nullptr) give_up(watch->settle(c10d.error()));
    for (;;) {
      const RotrnnState state = c10d.wait(work, kPollMs);
      if (state == ROTRNN_DONE) break;
      if (state == ROTRNN_FAILED) give_up(watch->settle(c10d.error()));
      if (const std::string verdict = watch->verdict(); !verdict.empty()) give_up(verdict);
    }
    c10d.drop(work);
    watch->leave();
  }

  void sum(RotrnnNumber type, void* values, size_t count) {
    run([&] { return c10d.all_reduce(peers, type, values, count); });
  }
  void wait_for_all(bool patient) {
    run([&] { return c10d.barrier(peers); }, patient);
  }
};

Group::Group() = default;

Group::Group(const Rendezvous& rendezvous, double timeout, bool bind) : rendezvous_(rendezvous) {
  if (rendezvous.size == 1) return;
  const RotrnnC10d& c10d = load_c10d();
  if (rendezvous.serves_store) check_port_is_free(rendezvous.port);
  auto impl = std::make_unique<Impl>(c10d, rendezvous);
  if (rendezvous.serves_store)
    impl->store = std::make_shared<Store>(c10d, rendezvous, timeout, true);
  const Reached reached = reach_master(rendezvous, timeout);
  if (!impl->store) impl->store = std::make_shared<Store>(c10d, rendezvous, timeout, false);

  const std::vector<Cpu> cpus = usable_cpus();
  Member self;
  self.size = rendezvous.size;
  self.process = ::getpid();
  self.local = reached.local;
  self.master = reached.peer;
  self.machine = machine_id();
  self.cpus = cpu_list(cpus);
  self.host = host_name();
  const auto members = [&] {
    try {
      return gather_members(rendezvous, *impl->store, self, timeout);
    } catch (const StoreLost& error) {
      throw std::runtime_error(
          fmt::format("rank {}: the connection to rank 0 at {}:{} broke while the ranks met: {}",
                      rendezvous.rank, rendezvous.master, rendezvous.port, error.what()));
    }
  }();
  std::vector<std::string> names;
  const Member& mine = members[static_cast<size_t>(rendezvous.rank)];
  Shard sharing{0, 0};  // of the processes with the same CPUs
  for (int rank = 0; rank < rendezvous.size; ++rank) {
    const Member& m = members[static_cast<size_t>(rank)];
    names.push_back(fmt::format("rank {} (host {}, process {})", rank, m.host, m.process));
    if (m.machine != mine.machine || m.cpus != mine.cpus) continue;
    ++sharing.size;
    sharing.rank += rank < rendezvous.rank;
  }
  const std::vector<Cpu> part = cpus_of(cpus, sharing);
  impl->threads = std::max(1, static_cast<int>(part.size()));
  // Before any thread is started: a message is then handled where its process waits for it.
  if (bind && sharing.size > 1) stay_on(part);
  impl->peers = connect(c10d, rendezvous, impl->store, own_address(self, members), timeout);

  const auto own_store = std::make_shared<Store>(c10d, rendezvous, timeout, false);
  impl->watch = std::make_unique<Watch>(board_of(own_store), rendezvous.rank, names,
                                        limits_of(timeout), [](const std::string& verdict) {
                                          print_message("rotrnn: stopped: {}\n", verdict);
                                          std::_Exit(1);
                                        });
  impl_ = std::move(impl);
}

Group::~Group() {
  if (!impl_) return;
  if (impl_->lost) {
    (void)impl_.release();  // its threads hang in calls that will not return
    return;
  }
  try {
    impl_->wait_for_all(/*patient=*/true);
    // Nobody closes a connection that another still reads from.
    impl_->store->add("left", 1);
    const auto end = Clock::now() + std::chrono::seconds(2);
    while (impl_->store->add("left", 0) < size() && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(5));
    }
  } catch (const std::exception&) {
    // Another process was faster, or is gone: the work is done.
  }
  if (impl_->lost) (void)impl_.release();
}

int Group::threads() const {
  return impl_ ? impl_->threads : kernels::available_threads();
}

void Group::all_reduce(float* values, size_t count) {
  if (impl_ && count > 0) impl_->sum(ROTRNN_FLOAT, values, count);
}

void Group::all_reduce(double* values, size_t count) {
  if (!impl_ || count == 0) return;
  if (count * sizeof(double) > kSmall) return impl_->sum(ROTRNN_DOUBLE, values, count);
  // Everybody's to everybody, and each adds them up in the same order: fewer packets than a ring.
  std::vector<double>& all = impl_->gathered;
  all.resize(count * static_cast<size_t>(size()));
  impl_->run([&] { return impl_->c10d.all_gather(impl_->peers, values, count, all.data()); });
  std::copy_n(all.data(), count, values);
  for (int rank = 1; rank < size(); ++rank) {
    const double* theirs = all.data() + static_cast<size_t>(rank) * count;
    for (size_t i = 0; i < count; ++i) values[i] += theirs[i];
  }
}

void Group::broadcast(void* bytes, size_t count) {
  if (!impl_ || count == 0) return;
  impl_->run([&] { return impl_->c10d.broadcast(impl_->peers, bytes, count); });
}

std::string Group::broadcast(const std::string& text) {
  uint64_t size = text.size();
  broadcast(&size, sizeof size);
  std::string shared = text;
  shared.resize(size);
  broadcast(shared.data(), shared.size());
  return shared;
}

void Group::barrier(bool patient) {
  if (impl_) impl_->wait_for_all(patient);
}

void Group::fail(const std::string& reason) {
  if (!impl_ || impl_->lost) return;
  impl_->lost = true;
  impl_->watch->report(reason);
  if (impl_->rendezvous.serves_store) impl_->watch->linger();
}

}  // namespace rotrnn
