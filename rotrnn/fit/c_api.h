/* Fitting models from C: a bank of rotations, counting features and a ridge regression, on arrays.
 * Part of librotrnn_runtime; rotrnn/runtime/c_api.h runs what comes out, and says how errors are
 * reported. */
#ifndef ROTRNN_FIT_H
#define ROTRNN_FIT_H

#include "rotrnn/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Series and their targets. Set everything to 0, then size, then what there is: later versions may
 * add members at the end. */
typedef struct rotrnn_fit_data {
  int64_t size;            /* sizeof(rotrnn_fit_data) */
  int64_t count, channels; /* series, and numbers per step */
  const float* values;     /* all steps of all series, one after the other: [steps, channels] */
  const int64_t* offsets; /* [count + 1]: series i has the steps offsets[i] to offsets[i + 1] - 1 */
  int64_t outputs;        /* classes, or values per series */
  const int64_t* labels;  /* [count]: numbers of classes, or */
  const double* targets;  /* [count, outputs]: values */
  const int64_t*
      groups; /* [count] or null: what belongs together, such as windows of one recording */
  const double* weights;          /* [count] or null */
  const char* const* class_names; /* [outputs] or null: "0", "1", … */
  int64_t rate;                   /* samples per second; 0: not known */
} rotrnn_fit_data;

/* 0 everywhere (but size) takes what rotrnn fit takes. */
typedef struct rotrnn_fit_options {
  int64_t size;       /* sizeof(rotrnn_fit_options) */
  int64_t states;     /* rotations in the bank; 0: 1,024 */
  uint64_t seed;      /* of the bank */
  int32_t threads;    /* 0: all */
  int32_t unbalanced; /* 1: classes count by their examples, however uneven they are */
} rotrnn_fit_options;

/* How well the model does on series that were left out of the fit: each (or each group) in turn, or
 * a fifth of many. Set size before the call. */
typedef struct rotrnn_fit_report {
  int64_t size;                    /* sizeof(rotrnn_fit_report) */
  double accuracy, accuracy_error; /* of classes, with its standard error */
  double loss;                     /* log loss, or mean square in units of the targets' variance */
  double penalty, temperature;     /* what was chosen */
} rotrnn_fit_report;

/* Fits a model; rotrnn_model_free frees it. options and report may be null. */
ROTRNN_C_API rotrnn_status rotrnn_fit(const rotrnn_fit_data* data,
                                      const rotrnn_fit_options* options, rotrnn_model** model,
                                      rotrnn_fit_report* report);

/* Writes a model as a file, which rotrnn_model_load reads; replaces one that is there. */
ROTRNN_C_API rotrnn_status rotrnn_model_save(const rotrnn_model* model, const char* file);

#ifdef __cplusplus
}
#endif

#endif
