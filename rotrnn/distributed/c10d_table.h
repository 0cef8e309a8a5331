#pragma once

#include <stddef.h>
#include <stdint.h>

// What the program and librotrnn_c10d.so agree on. The library alone knows LibTorch; the program
// loads it when it is one of several processes. Plain C, so that neither side has to be compiled
// like the other: no exceptions, no memory that one side takes and the other gives back.

#ifdef __cplusplus
extern "C" {
#endif

/// Goes up with every change of the table.
#define ROTRNN_C10D_VERSION 1

/// Keys and values that all processes can read and write.
typedef struct RotrnnStore RotrnnStore;
/// The network interface that messages go through.
typedef struct RotrnnDevice RotrnnDevice;
/// Connections with every other process.
typedef struct RotrnnPeers RotrnnPeers;
/// A message under way.
typedef struct RotrnnWork RotrnnWork;

typedef enum RotrnnNumber { ROTRNN_FLOAT = 0, ROTRNN_DOUBLE = 1 } RotrnnNumber;

typedef enum RotrnnState {
  ROTRNN_FAILED = -1,
  ROTRNN_NOT_YET = 0,
  ROTRNN_DONE = 1,
} RotrnnState;

/// A function that returns a pointer returns null when it fails, one that returns an int -1; then
/// `error` gives the reason. Texts that it gives stay until the next call on the same thread.
typedef struct RotrnnC10d {
  uint32_t version;  // ROTRNN_C10D_VERSION
  uint32_t size;     // of this struct
  const char* name;  // such as "c10d with Gloo, LibTorch 1.13.0"

  /// Why the last call on this thread failed, in one line.
  const char* (*error)(void);

  /// Opens the store of `ranks` processes at a host, as the one who keeps it or as a client. Keys
  /// stand behind `prefix`. No call takes longer than the timeout.
  RotrnnStore* (*open_store)(const char* host, int port, int serves, int ranks, const char* prefix,
                             int64_t timeout_ms);
  void (*close_store)(RotrnnStore* store);
  int (*set)(RotrnnStore* store, const char* key, const char* value, size_t size);
  /// 1: here it is; 0: there is no such key yet.
  int (*get)(RotrnnStore* store, const char* key, const char** value, size_t* size);
  /// Sets the key unless it has a value already; `stands` is what it has then.
  int (*claim)(RotrnnStore* store, const char* key, const char* value, size_t size,
               const char** stands, size_t* stands_size);
  /// Adds to the number that a key has, 0 at first; `sum` is what it has then.
  int (*add)(RotrnnStore* store, const char* key, int64_t amount, int64_t* sum);

  /// The interface of this name, or when that is null the one with this address.
  RotrnnDevice* (*open_device)(const char* interface_name, const char* address);
  void (*close_device)(RotrnnDevice* device);
  /// Returns when every process has connected with every other, which may be never.
  RotrnnPeers* (*connect)(RotrnnStore* store, RotrnnDevice* device, int rank, int size);
  void (*close_peers)(RotrnnPeers* peers);

  /// Messages: all processes start the same ones in the same order. The arrays stay where they are
  /// until the work is done.
  /// Sums in place; the same bits everywhere.
  RotrnnWork* (*all_reduce)(RotrnnPeers* peers, RotrnnNumber type, void* values, size_t count);
  /// The `count` numbers of every rank, in order of rank.
  RotrnnWork* (*all_gather)(RotrnnPeers* peers, const double* mine, size_t count, double* all);
  /// What rank 0 has, to all.
  RotrnnWork* (*broadcast)(RotrnnPeers* peers, void* bytes, size_t count);
  RotrnnWork* (*barrier)(RotrnnPeers* peers);

  /// Waits for so long at most.
  RotrnnState (*wait)(RotrnnWork* work, int64_t timeout_ms);
  void (*drop)(RotrnnWork* work);
} RotrnnC10d;

/// The only function that librotrnn_c10d.so exports, named ROTRNN_C10D_FUNCTION.
const RotrnnC10d* rotrnn_c10d(void);
#define ROTRNN_C10D_FUNCTION "rotrnn_c10d"

#ifdef __cplusplus
}
#endif
