// librotrnn_c10d.so: LibTorch's c10d with Gloo behind the table. The only file that includes them.
#include <ATen/ATen.h>
#include <torch/version.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "rotrnn/distributed/c10d_table.h"

struct RotrnnStore {
  c10::intrusive_ptr<c10d::Store> store;
};

struct RotrnnDevice {
  std::shared_ptr<gloo::transport::Device> device;
};

struct RotrnnPeers {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

struct RotrnnWork {
  c10::intrusive_ptr<c10d::Work> work;
};

namespace {

using std::chrono::milliseconds;

// Gloo's limit, never reached: the program's is shorter and names the process.
constexpr auto kForever = std::chrono::hours(24 * 30);

thread_local std::string last_error;
thread_local std::vector<uint8_t> last_value;

// LibTorch's messages carry a stack trace after the first line.
void note(const char* text) {
  last_error = text;
  last_error.resize(std::min(last_error.find('\n'), last_error.size()));
}

// What f returns, or `failed` when it throws: nothing is thrown across the table.
template <class Result, class F>
Result guarded(Result failed, const F& f) noexcept {
  try {
    return f();
  } catch (const std::exception& error) {
    note(error.what());
  } catch (...) {
    note("an exception of an unknown kind");
  }
  return failed;
}

const char* error() {
  return last_error.c_str();
}

std::vector<uint8_t> bytes_of(const char* value, size_t size) {
  return {value, value + size};
}

void give(std::vector<uint8_t> bytes, const char** value, size_t* size) {
  last_value = std::move(bytes);
  *value = reinterpret_cast<const char*>(last_value.data());
  *size = last_value.size();
}

RotrnnStore* open_store(const char* host, int port, int serves, int ranks, const char* prefix,
                        int64_t timeout_ms) {
  return guarded<RotrnnStore*>(nullptr, [&] {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(port);
    options.isServer = serves != 0;
    options.numWorkers = static_cast<size_t>(ranks);
    options.waitWorkers = false;
    options.timeout = milliseconds(timeout_ms);
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    return new RotrnnStore{c10::make_intrusive<c10d::PrefixStore>(prefix, store)};
  });
}

void close_store(RotrnnStore* store) {
  delete store;
}

int set(RotrnnStore* store, const char* key, const char* value, size_t size) {
  return guarded(-1, [&] {
    store->store->set(key, bytes_of(value, size));
    return 0;
  });
}

int get(RotrnnStore* store, const char* key, const char** value, size_t* size) {
  return guarded(-1, [&] {
    if (!store->store->check({key})) return 0;
    give(store->store->get(key), value, size);
    return 1;
  });
}

int claim(RotrnnStore* store, const char* key, const char* value, size_t size, const char** stands,
          size_t* stands_size) {
  return guarded(-1, [&] {
    give(store->store->compareSet(key, {}, bytes_of(value, size)), stands, stands_size);
    return 0;
  });
}

int add(RotrnnStore* store, const char* key, int64_t amount, int64_t* sum) {
  return guarded(-1, [&] {
    *sum = store->store->add(key, amount);
    return 0;
  });
}

RotrnnDevice* open_device(const char* interface_name, const char* address) {
  return guarded<RotrnnDevice*>(nullptr, [&] {
    using Gloo = c10d::ProcessGroupGloo;
    return new RotrnnDevice{interface_name != nullptr
                                ? Gloo::createDeviceForInterface(interface_name)
                                : Gloo::createDeviceForHostname(address)};
  });
}

void close_device(RotrnnDevice* device) {
  delete device;
}

RotrnnPeers* connect(RotrnnStore* store, RotrnnDevice* device, int rank, int size) {
  return guarded<RotrnnPeers*>(nullptr, [&] {
    auto options = c10d::ProcessGroupGloo::Options::create(kForever);
    options->devices = {device->device};
    options->threads = 1;  // one operation at a time
    auto keys = c10::make_intrusive<c10d::PrefixStore>("gloo", store->store);
    return new RotrnnPeers{c10::make_intrusive<c10d::ProcessGroupGloo>(keys, rank, size, options)};
  });
}

void close_peers(RotrnnPeers* peers) {
  delete peers;
}

template <class F>
RotrnnWork* start(const F& f) noexcept {
  return guarded<RotrnnWork*>(nullptr, [&] { return new RotrnnWork{f()}; });
}

// An array as a tensor that does not own it.
at::Tensor tensor_of(void* values, size_t count, at::ScalarType type) {
  return at::from_blob(values, {static_cast<int64_t>(count)}, at::TensorOptions(type));
}

RotrnnWork* all_reduce(RotrnnPeers* peers, RotrnnNumber type, void* values, size_t count) {
  return start([&] {
    std::vector<at::Tensor> list{
        tensor_of(values, count, type == ROTRNN_FLOAT ? at::kFloat : at::kDouble)};
    return peers->gloo->allreduce(list);
  });
}

RotrnnWork* all_gather(RotrnnPeers* peers, const double* mine, size_t count, double* all) {
  return start([&] {
    std::vector<at::Tensor> input{tensor_of(const_cast<double*>(mine), count, at::kDouble)};
    std::vector<std::vector<at::Tensor>> output(1);
    for (int rank = 0; rank < peers->gloo->getSize(); ++rank) {
      output[0].push_back(tensor_of(all + static_cast<size_t>(rank) * count, count, at::kDouble));
    }
    return peers->gloo->allgather(output, input);
  });
}

RotrnnWork* broadcast(RotrnnPeers* peers, void* bytes, size_t count) {
  return start([&] {
    std::vector<at::Tensor> list{tensor_of(bytes, count, at::kByte)};
    return peers->gloo->broadcast(list);
  });
}

RotrnnWork* barrier(RotrnnPeers* peers) {
  return start([&] { return peers->gloo->barrier(); });
}

RotrnnState wait(RotrnnWork* work, int64_t timeout_ms) {
  return guarded(ROTRNN_FAILED, [&] {
    try {
      work->work->wait(milliseconds(timeout_ms));
      return ROTRNN_DONE;
    } catch (...) {
      // The time is over, or the work failed. It may have ended well just after the wait did, which
      // the next wait reports.
      if (work->work->isCompleted() && work->work->exception()) throw;
      return ROTRNN_NOT_YET;
    }
  });
}

void drop(RotrnnWork* work) {
  delete work;
}

constexpr RotrnnC10d kTable = {
    ROTRNN_C10D_VERSION,
    sizeof(RotrnnC10d),
    "c10d with Gloo, LibTorch " TORCH_VERSION,
    error,
    open_store,
    close_store,
    set,
    get,
    claim,
    add,
    open_device,
    close_device,
    connect,
    close_peers,
    all_reduce,
    all_gather,
    broadcast,
    barrier,
    wait,
    drop,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const RotrnnC10d* rotrnn_c10d(void) {
  return &kTable;
}
