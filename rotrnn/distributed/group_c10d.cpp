// The only file that includes c10d.
#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <sstream>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "rotrnn/distributed/cpus.h"
#include "rotrnn/distributed/group.h"
#include "rotrnn/distributed/reach.h"
#include "rotrnn/distributed/watch.h"
#include "rotrnn/io/tell.h"
#include "rotrnn/kernels/threads.h"

namespace rotrnn {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using StorePointer = c10::intrusive_ptr<c10d::Store>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// Gloo's own limit, never reached: Watch decides, and knows whom to name.
constexpr auto kForever = std::chrono::hours(24 * 30);
// Up to so many bytes the time of a message is that of its packets, not of its bytes.
constexpr size_t kSmall = 1 << 16;
// How often a waiting process looks whether the group is lost.
constexpr milliseconds kPoll(250);

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::optional<std::string> read_key(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return {};
  return text_of(store.get(key));
}

Board board_of(const StorePointer& store) {
  Board board;
  board.write = [store](const std::string& key, const std::string& value) {
    store->set(key, bytes_of(value));
  };
  board.read = [store](const std::string& key) { return read_key(*store, key); };
  board.claim = [store](const std::string& key, const std::string& value) {
    return text_of(store->compareSet(key, {}, bytes_of(value)));
  };
  return board;
}

// What a process says of itself when it comes.
struct Member {
  int size = 0;
  long process = 0;
  std::string local, master;  // addresses: its own, and of rank 0 as it sees it
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

StorePointer open_store(const Place& place, double timeout, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = serves;
  options.numWorkers = static_cast<size_t>(place.size);
  options.waitWorkers = false;
  options.timeout = milliseconds(static_cast<int64_t>(timeout * 1000));
  try {
    StorePointer store = c10::make_intrusive<c10d::TCPStore>(place.master, options);
    return c10::make_intrusive<c10d::PrefixStore>("rotrnn/" + place.round, store);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("rank {}: the store at {}:{} cannot be opened: {}",
                                         place.rank, place.master, place.port, first_line(error)));
  }
}

Reached reach_master(const Place& place, double timeout) {
  try {
    return reach(place.master, place.port, timeout);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("rank {} could not reach rank 0 at {}:{} within {:g} s: {}; is rank 0 running "
                    "there, and is "
                    "the port open? MASTER_ADDR and MASTER_PORT say where",
                    place.rank, place.master, place.port, timeout, error.what()));
  }
}

// Who has not come, for all to read. Whoever keeps the store stays until they have.
[[noreturn]] void miss(const Place& place, c10d::Store& store, double timeout) {
  std::string missing;
  for (int rank = 0; rank < place.size; ++rank) {
    if (store.check({member_key(rank)})) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  const std::string text =
      fmt::format("of {} ranks these did not come within {:g} s: {}", place.size, timeout, missing);
  store.set(kMissing, bytes_of(text));
  if (place.serves_store) std::this_thread::sleep_for(std::chrono::seconds(1));
  throw std::runtime_error(text);
}

// Waits until every rank has said what it is.
std::vector<Member> gather_members(const Place& place, c10d::Store& store, const Member& self,
                                   double timeout) {
  if (store.add(fmt::format("claimed/{}", place.rank), 1) != 1) {
    throw std::runtime_error(fmt::format(
        "two processes say that they are rank {} of the group at {}:{}; each needs a RANK of its "
        "own, and each job a MASTER_PORT",
        place.rank, place.master, place.port));
  }
  store.set(member_key(place.rank), bytes_of(self.text()));
  const auto end = Clock::now() + milliseconds(static_cast<int64_t>(timeout * 1000));
  std::vector<Member> members;
  for (int rank = 0; rank < place.size; ++rank) {
    auto text = read_key(store, member_key(rank));
    while (!text) {
      if (const auto missing = read_key(store, kMissing)) throw std::runtime_error(*missing);
      if (Clock::now() > end) miss(place, store, timeout);
      std::this_thread::sleep_for(milliseconds(20));
      text = read_key(store, member_key(rank));
    }
    members.push_back(Member::parse(*text));
    if (members.back().size != place.size) {
      throw std::runtime_error(fmt::format(
          "rank {} is one of {} processes and rank {} one of {}; WORLD_SIZE must be the "
          "same for all",
          rank, members.back().size, place.rank, place.size));
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

std::shared_ptr<gloo::transport::Device> make_device(const std::string& address) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface != nullptr && *interface != '\0'
             ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
             : c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

// Connects every process with every other. On a thread of its own, which is left behind when it
// does not come back: there is no other way to give up.
c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const Place& place, const StorePointer& store,
                                                   const std::string& address, double timeout) {
  using Result = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
  auto promise = std::make_shared<std::promise<Result>>();
  auto future = promise->get_future();
  std::thread([=] {
    try {
      auto options = c10d::ProcessGroupGloo::Options::create(kForever);
      {
        // The device's thread spins while another holds a connection's lock: were it to push that
        // one aside, it would spin until its turn is over, a few milliseconds.
        const Humble humble;
        options->devices = {make_device(address)};
      }
      options->threads = 1;  // one operation at a time
      promise->set_value(
          c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format(
        "rank {} ({}) met the others but could not connect to all of them: {}; GLOO_SOCKET_IFNAME "
        "names the network interface to use",
        place.rank, address, why));
  };
  if (future.wait_for(std::chrono::duration<double>(timeout)) != std::future_status::ready) {
    fail(fmt::format("no answer within {:g} s", timeout));
  }
  try {
    return future.get();
  } catch (const std::exception& error) {
    fail(first_line(error));
  }
  return {};
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
  StorePointer store;  // of the working thread; Watch has a connection of its own
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
#ifdef USE_C10D_NCCL
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl;  // made for the first tensor on a GPU
#endif
  std::unique_ptr<Watch> watch;
  Place place;
  int threads = 1;
  bool lost = false;

  [[noreturn]] void give_up(const std::string& verdict) {
    lost = true;
    if (place.serves_store) watch->linger();
    throw GroupLost(verdict);
  }

  // Starts an operation and waits for its end, or for the verdict that there will be none.
  template <class Start>
  void run(const Start& start, bool patient = false) {
    if (lost) throw GroupLost(watch->verdict());
    watch->enter(patient);
    WorkPointer work;
    try {
      work = start();
    } catch (const std::exception& error) {
      give_up(watch->settle(first_line(error)));
    }
    for (;;) {
      try {
        work->wait(kPoll);
        watch->leave();
        return;
      } catch (const std::exception& error) {
        // It may have ended well just after the wait did, which the next wait tells.
        if (work->isCompleted() && work->exception()) give_up(watch->settle(first_line(error)));
      }
      if (const std::string verdict = watch->verdict(); !verdict.empty()) give_up(verdict);
    }
  }

  c10d::ProcessGroup& carrier(const at::Tensor& tensor) {
#ifdef USE_C10D_NCCL
    if (tensor.is_cuda()) {
      if (!nccl) {
        nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(
            c10::make_intrusive<c10d::PrefixStore>("nccl", store), place.rank, place.size);
      }
      return *nccl;
    }
#endif
    (void)tensor;
    return *gloo;
  }
};

Group::Group() = default;

Group::Group(const Place& place, double timeout, bool bind) : place_(place) {
  if (place.size == 1) return;
  if (place.serves_store) check_port_is_free(place.port);
  auto impl = std::make_unique<Impl>();
  impl->place = place;
  if (place.serves_store) impl->store = open_store(place, timeout, true);
  const Reached reached = reach_master(place, timeout);
  if (!impl->store) impl->store = open_store(place, timeout, false);

  const std::vector<Cpu> cpus = usable_cpus();
  Member self;
  self.size = place.size;
  self.process = ::getpid();
  self.local = reached.local;
  self.master = reached.peer;
  self.machine = machine_id();
  self.cpus = cpu_list(cpus);
  self.host = host_name();
  const auto members = [&] {
    try {
      return gather_members(place, *impl->store, self, timeout);
    } catch (const std::system_error& error) {
      throw std::runtime_error(
          fmt::format("rank {}: the connection to rank 0 at {}:{} broke while the ranks met: {}",
                      place.rank, place.master, place.port, error.what()));
    }
  }();
  std::vector<std::string> names;
  const Member& own = members[static_cast<size_t>(place.rank)];
  Shard sharing{0, 0};  // of the processes with the same CPUs
  for (int rank = 0; rank < place.size; ++rank) {
    const Member& m = members[static_cast<size_t>(rank)];
    names.push_back(fmt::format("rank {} (host {}, process {})", rank, m.host, m.process));
    if (m.machine != own.machine || m.cpus != own.cpus) continue;
    ++sharing.size;
    sharing.rank += rank < place.rank;
  }
  const std::vector<Cpu> part = cpus_of(cpus, sharing);
  impl->threads = std::max(1, static_cast<int>(part.size()));
  // Before any thread is started: a message is then handled where its process waits for it.
  if (bind && sharing.size > 1) stay_on(part);
  impl->gloo = connect(place, c10::make_intrusive<c10d::PrefixStore>("gloo", impl->store),
                       own_address(self, members), timeout);

  impl->watch = std::make_unique<Watch>(board_of(open_store(place, timeout, false)), place.rank,
                                        names, limits_of(timeout), [](const std::string& verdict) {
                                          tell("rotrnn: stopped: {}\n", verdict);
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
    impl_->run([&] { return impl_->gloo->barrier(); }, true);
    // Nobody closes a connection that another still reads from.
    impl_->store->add("left", 1);
    const auto end = Clock::now() + std::chrono::seconds(2);
    while (impl_->store->add("left", 0) < size() && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(5));
    }
  } catch (const std::exception&) {
    // Somebody was faster, or is gone: the work is done.
  }
  if (impl_->lost) (void)impl_.release();
}

int Group::threads() const {
  return impl_ ? impl_->threads : kernels::available_threads();
}

void Group::all_reduce(at::Tensor& values) {
  if (!impl_) return;
  std::vector<at::Tensor> list{values};
  impl_->run([&] { return impl_->carrier(values).allreduce(list); });
}

void Group::all_reduce(double* values, size_t count) {
  if (!impl_) return;
  at::Tensor tensor = torch::from_blob(values, {static_cast<int64_t>(count)}, torch::kFloat64);
  if (count * sizeof(double) > kSmall) return all_reduce(tensor);
  // Everybody's to everybody, and each adds them up in the same order: fewer packets than a ring.
  const at::Tensor all = torch::empty({size(), tensor.numel()}, torch::kFloat64);
  std::vector<at::Tensor> mine{tensor};
  std::vector<std::vector<at::Tensor>> theirs{all.unbind()};
  impl_->run([&] { return impl_->gloo->allgather(theirs, mine); });
  tensor.copy_(theirs[0][0]);
  for (int rank = 1; rank < size(); ++rank) tensor += theirs[0][static_cast<size_t>(rank)];
}

void Group::broadcast(at::Tensor& values) {
  if (!impl_) return;
  std::vector<at::Tensor> list{values};
  impl_->run([&] { return impl_->carrier(values).broadcast(list); });
}

void Group::broadcast(void* bytes, size_t count) {
  if (!impl_ || count == 0) return;
  at::Tensor tensor = torch::from_blob(bytes, {static_cast<int64_t>(count)}, torch::kUInt8);
  broadcast(tensor);
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
  if (impl_) impl_->run([&] { return impl_->gloo->barrier(); }, patient);
}

void Group::fail(const std::string& reason) {
  if (!impl_ || impl_->lost) return;
  impl_->lost = true;
  impl_->watch->report(reason);
  if (impl_->place.serves_store) impl_->watch->linger();
}

}  // namespace rotrnn
