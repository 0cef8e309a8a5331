#pragma once

/// Marks what the shared library of the runtime exports; everything else in it is hidden.
#if defined(ROTRNN_SHARED) && (defined(__GNUC__) || defined(__clang__))
#define ROTRNN_API __attribute__((visibility("default")))
#else
#define ROTRNN_API
#endif
