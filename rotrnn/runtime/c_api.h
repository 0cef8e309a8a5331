/* The C interface of the rotrnn runtime: trained models, one sample at a time or whole sequences.
 *
 * Every function that can fail returns a rotrnn_status; rotrnn_last_error() then says what was
 * wrong and what to do, for the calling thread. No exception leaves the library. Handles are
 * opaque; a model may be shared by threads, a stream is used by one thread at a time. Null handles
 * and null outputs are reported, never followed. */
#ifndef ROTRNN_H
#define ROTRNN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define ROTRNN_C_API __attribute__((visibility("default")))
#else
#define ROTRNN_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rotrnn_model rotrnn_model;
typedef struct rotrnn_stream rotrnn_stream;

typedef enum rotrnn_status {
  ROTRNN_OK = 0,
  ROTRNN_BAD_ARGUMENT = 1, /* a null pointer, a wrong size, a token outside the vocabulary */
  ROTRNN_BAD_FILE = 2,     /* missing, unreadable, damaged, or not a model */
  ROTRNN_UNSUPPORTED = 3,  /* this model cannot do that; the message says what can */
  ROTRNN_OUT_OF_MEMORY = 4,
  ROTRNN_INTERNAL = 5
} rotrnn_status;

typedef enum rotrnn_pooling {
  ROTRNN_POOL_MEAN = 0,
  ROTRNN_POOL_LAST = 1,
  ROTRNN_POOL_NONE = 2 /* an output for every step */
} rotrnn_pooling;

/* What a model takes and gives. The caller sets size before it asks, so that later versions may add
 * members at the end: a program and a library of different versions then agree on what both know,
 * and the rest is 0. */
typedef struct rotrnn_model_info {
  int64_t size;    /* sizeof(rotrnn_model_info) */
  int64_t inputs;  /* channels, or size of the vocabulary */
  int64_t outputs; /* classes, or values */
  int64_t width, states, depth, parameters;
  int64_t rate;       /* samples per second; 0: not known */
  int32_t tokens;     /* 1: takes token numbers, 0: takes values */
  int32_t text;       /* 1: takes text as well */
  int32_t classifies; /* 1: outputs are classes */
  int32_t bidirectional;
  int32_t pairs; /* 1: an example is two sequences */
  rotrnn_pooling pooling;
  /* Steps of the input that are one step of the network, and from one to the next; 1 without a
   * front end. */
  int64_t window, hop;
} rotrnn_model_info;

/* The version of this library, such as "0.1.0". */
ROTRNN_C_API const char* rotrnn_version(void);

/* What the last call of this thread that failed had to say; "" when none did. */
ROTRNN_C_API const char* rotrnn_last_error(void);

/* Models. */
ROTRNN_C_API rotrnn_status rotrnn_model_load(const char* file, rotrnn_model** model);
ROTRNN_C_API rotrnn_status rotrnn_model_from_memory(const void* bytes, size_t size,
                                                    rotrnn_model** model);
/* Frees the handle; streams that were made from it go on working. Null is allowed. */
ROTRNN_C_API void rotrnn_model_free(rotrnn_model* model);
ROTRNN_C_API rotrnn_status rotrnn_model_describe(const rotrnn_model* model,
                                                 rotrnn_model_info* info);
/* The name of a class, valid as long as the model; null when there is no such class. */
ROTRNN_C_API const char* rotrnn_model_class_name(const rotrnn_model* model, int64_t index);

/* Whole sequences. offsets [sequences + 1]; logits [examples, outputs], or [steps, outputs] for
 * ROTRNN_POOL_NONE; capacity is the room there, in floats. threads: 0 for all. */
ROTRNN_C_API rotrnn_status rotrnn_score(const rotrnn_model* model, const float* values,
                                        const int64_t* offsets, size_t sequences, int threads,
                                        float* logits, size_t capacity);
ROTRNN_C_API rotrnn_status rotrnn_score_tokens(const rotrnn_model* model, const int32_t* tokens,
                                               const int64_t* offsets, size_t sequences,
                                               int threads, float* logits, size_t capacity);
/* Logits to probabilities, or to values in the units of the data, in place. */
ROTRNN_C_API rotrnn_status rotrnn_answer(const rotrnn_model* model, float* logits, size_t count);

/* Streams. */
ROTRNN_C_API rotrnn_status rotrnn_stream_new(const rotrnn_model* model, rotrnn_stream** stream);
ROTRNN_C_API void rotrnn_stream_free(rotrnn_stream* stream);
/* steps whole steps of info.inputs channels each, in natural units (audio -1 to 1). */
ROTRNN_C_API rotrnn_status rotrnn_stream_push(rotrnn_stream* stream, const float* values,
                                              size_t steps);
ROTRNN_C_API rotrnn_status rotrnn_stream_push_tokens(rotrnn_stream* stream, const int32_t* tokens,
                                                     size_t count);
ROTRNN_C_API rotrnn_status rotrnn_stream_push_text(rotrnn_stream* stream, const char* text,
                                                   size_t bytes);
/* The sequence is complete: adds the end mark that texts were trained with, if any. */
ROTRNN_C_API rotrnn_status rotrnn_stream_end(rotrnn_stream* stream);
/* For models that were fitted (rotrnn fit, rotrnn_fit): what is k steps old counts exp(-k/memory),
 * so that a stream without end is answered by its last stretch; 0: nothing is forgotten. Before the
 * first step. */
ROTRNN_C_API rotrnn_status rotrnn_stream_set_memory(rotrnn_stream* stream, double memory);
ROTRNN_C_API rotrnn_status rotrnn_stream_reset(rotrnn_stream* stream);
ROTRNN_C_API int64_t rotrnn_stream_steps(const rotrnn_stream* stream);
/* Logits, or probabilities and values in units of the data, at this moment: count floats, as many
 * as info.outputs. */
ROTRNN_C_API rotrnn_status rotrnn_stream_logits(rotrnn_stream* stream, float* out, size_t count);
ROTRNN_C_API rotrnn_status rotrnn_stream_answer(rotrnn_stream* stream, float* out, size_t count);
/* |z|, the norm of the state of every block at this moment: count floats, as many as info.depth. */
ROTRNN_C_API rotrnn_status rotrnn_stream_norms(const rotrnn_stream* stream, float* out,
                                               size_t count);
/* The state as bytes; another stream of the same model goes on from it. */
ROTRNN_C_API size_t rotrnn_stream_state_size(const rotrnn_stream* stream);
ROTRNN_C_API rotrnn_status rotrnn_stream_save(const rotrnn_stream* stream, void* state,
                                              size_t size);
ROTRNN_C_API rotrnn_status rotrnn_stream_restore(rotrnn_stream* stream, const void* state,
                                                 size_t size);

#ifdef __cplusplus
}
#endif

#endif
