#include "rotrnn/distributed/c10d_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "librotrnn_c10d.so";
constexpr char kHow[] =
    "in a checkout `./run launch -n 2 -- train CONFIG` builds it first, and so does "
    "`scripts/install c10d && scripts/build release rotrnn_c10d`; on Debian: apt install "
    "rotrnn-c10d; ROTRNN_C10D names the file when it is elsewhere";

// Where the program itself is; empty where unknown.
fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// The library beside the program; empty when there is none.
fs::path beside(const fs::path& folder) {
  for (const char* below : {".", "../lib", "../lib64", "../lib/" ROTRNN_ARCHITECTURE}) {
    std::error_code error;
    const fs::path file = folder / below / kName;
    if (fs::exists(file, error)) return file.lexically_normal();
  }
  return {};
}

struct Loaded {
  const RotrnnC10d* table = nullptr;
  std::string trouble;  // why there is none
};

// The file that ROTRNN_C10D names or the one beside the program; empty when there is neither.
fs::path find() {
  const char* named = std::getenv("ROTRNN_C10D");
  return named != nullptr && *named != '\0' ? fs::path(named) : beside(program_folder());
}

Loaded load() {
  const fs::path folder = program_folder();
  std::string file = find().string();
  const bool by_system = file.empty();
  if (by_system) file = kName;
  const auto cannot = [&](const std::string& why) {
    return Loaded{nullptr, fmt::format("{} cannot be loaded: {}", file, why)};
  };
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string why = ::dlerror();
    // Else it is there, and something that it needs is not.
    if (!by_system || !why.starts_with(kName)) return cannot(why);
    return {nullptr,
            fmt::format("{} not found, neither beside the program ({}, {}) nor by the system",
                        kName, folder.string(), (folder.parent_path() / "lib").string())};
  }
  const auto function =
      reinterpret_cast<decltype(&rotrnn_c10d)>(::dlsym(library, ROTRNN_C10D_FUNCTION));
  if (function == nullptr) return cannot("it has no function " ROTRNN_C10D_FUNCTION);
  const RotrnnC10d* table = function();
  if (table->version != ROTRNN_C10D_VERSION || table->size != sizeof(RotrnnC10d)) {
    return cannot(
        fmt::format("its table has version {}, and this program knows version {}: they "
                    "are not of the same rotrnn",
                    table->version, ROTRNN_C10D_VERSION));
  }
  return {table, ""};
}

}  // namespace

const RotrnnC10d& load_c10d() {
  static const RotrnnC10d& table = [&]() -> const RotrnnC10d& {
    const Loaded loaded = load();
    if (loaded.table != nullptr) return *loaded.table;
    throw std::runtime_error(
        fmt::format("several processes need LibTorch's c10d: {}; {}", loaded.trouble, kHow));
  }();
  return table;
}

std::string describe_c10d() {
  const fs::path file = find();
  std::error_code error;
  if (file.empty()) return fmt::format("none ({} is not beside the program)", kName);
  return fs::exists(file, error) ? file.string()
                                 : fmt::format("none ({}: no such file)", file.string());
}

}  // namespace rotrnn
