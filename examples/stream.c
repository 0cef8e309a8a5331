/* A trained model in a C program: numbers from standard input, a line for
 * each change of the prediction.
 *   seq 100 | build/release/bin/example_stream_c model.safetensors */
#include <stdio.h>
#include <stdlib.h>

#include "rotrnn/runtime/c_api.h"

static void check(rotrnn_status status) {
  if (status == ROTRNN_OK) return;
  fprintf(stderr, "%s\n", rotrnn_last_error());
  exit(1);
}

/* Prints the prediction if it differs from `printed`, or whenever `when` is not empty; returns it.
 */
static int64_t print(const rotrnn_model* model, rotrnn_stream* stream, float* answer, size_t count,
                     int64_t printed, const char* when) {
  size_t best = 0, k;
  const char* name;
  check(rotrnn_stream_answer(stream, answer, count));
  for (k = 1; k < count; ++k) {
    if (answer[k] > answer[best]) best = k;
  }
  if ((int64_t)best == printed && *when == '\0') return printed;
  name = rotrnn_model_class_name(model, (int64_t)best);
  printf("%sstep %lld: %s %g\n", when, (long long)rotrnn_stream_steps(stream),
         name ? name : "value", answer[best]);
  return (int64_t)best;
}

int main(int argc, char** argv) {
  rotrnn_model* model;
  rotrnn_stream* stream;
  rotrnn_model_info info = {.size = sizeof info};
  float *step, *answer;
  int64_t have = 0, printed = -1;

  if (argc != 2) return fprintf(stderr, "usage: example_stream_c MODEL < NUMBERS\n"), 2;
  check(rotrnn_model_load(argv[1], &model));
  check(rotrnn_model_describe(model, &info));
  check(rotrnn_stream_new(model, &stream));
  step = malloc((size_t)info.inputs * sizeof *step);
  answer = malloc((size_t)info.outputs * sizeof *answer);
  if (!step || !answer) return 1;
  while (scanf("%f", &step[have]) == 1) {
    if (++have < info.inputs) continue; /* a step has a number for each channel */
    check(rotrnn_stream_push(stream, step, 1));
    have = 0;
    printed = print(model, stream, answer, (size_t)info.outputs, printed, "");
  }
  print(model, stream, answer, (size_t)info.outputs, printed, "end, ");
  free(answer);
  free(step);
  rotrnn_stream_free(stream);
  rotrnn_model_free(model);
  return 0;
}
