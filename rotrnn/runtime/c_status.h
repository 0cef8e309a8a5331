#pragma once

#include <memory>
#include <new>
#include <stdexcept>

#include "rotrnn/runtime/c_api.h"
#include "rotrnn/runtime/model.h"

// What the files of the C interface share: handles, and exceptions as a status. Internal.

struct rotrnn_model {
  std::shared_ptr<const rotrnn::runtime::Model> model;
};

namespace rotrnn::runtime {

/// Keeps the message for rotrnn_last_error().
rotrnn_status fail(rotrnn_status status, const char* message) noexcept;

/// What rotrnn_last_error() gives in this thread.
const char* last_error() noexcept;

inline rotrnn_status missing(const char* what) noexcept {
  return fail(ROTRNN_BAD_ARGUMENT, what);
}

/// Runs body; `wrong_use` is what a std::invalid_argument means here, `failure` a
/// std::runtime_error.
template <typename Body>
rotrnn_status guarded(rotrnn_status wrong_use, rotrnn_status failure, const Body& body) noexcept {
  try {
    body();
    return ROTRNN_OK;
  } catch (const std::bad_alloc&) {
    return fail(ROTRNN_OUT_OF_MEMORY, "there is not enough memory");
  } catch (const std::length_error&) {
    return fail(ROTRNN_OUT_OF_MEMORY, "there is not enough memory");
  } catch (const std::invalid_argument& error) {
    return fail(wrong_use, error.what());
  } catch (const std::runtime_error& error) {
    return fail(failure, error.what());
  } catch (const std::exception& error) {
    return fail(ROTRNN_INTERNAL, error.what());
  } catch (...) {
    return fail(ROTRNN_INTERNAL, "an exception of an unknown kind was thrown");
  }
}

template <typename Body>
rotrnn_status guarded(const Body& body) noexcept {
  return guarded(ROTRNN_BAD_ARGUMENT, ROTRNN_INTERNAL, body);
}

}  // namespace rotrnn::runtime
