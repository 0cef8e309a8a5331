/* A model in a second, from C: waves of three frequencies are fitted, and a new one is streamed.
 *   build/release/bin/example_fit_c */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rotrnn/fit/c_api.h"

enum { SERIES = 90, STEPS = 60, CLASSES = 3 };

static void check(rotrnn_status status) {
  if (status == ROTRNN_OK) return;
  fprintf(stderr, "%s\n", rotrnn_last_error());
  exit(1);
}

static void wave(float* out, int label) {
  const double phase = 6.28 * rand() / RAND_MAX;
  int t;
  for (t = 0; t < STEPS; ++t) {
    out[t] = (float)(sin(phase + 0.3 * (label + 1) * t) + 0.5 * rand() / RAND_MAX);
  }
}

int main(void) {
  static float values[SERIES * STEPS], fresh[STEPS], answer[CLASSES];
  static int64_t offsets[SERIES + 1], labels[SERIES];
  const char* names[CLASSES] = {"slow", "middle", "fast"};
  rotrnn_fit_data data = {.size = sizeof data, .count = SERIES, .channels = 1, .outputs = CLASSES};
  rotrnn_fit_options options = {.size = sizeof options, .states = 128};
  rotrnn_fit_report report = {.size = sizeof report};
  rotrnn_model* model;
  rotrnn_stream* stream;
  int i, t, best;

  for (i = 0; i < SERIES; ++i) {
    labels[i] = i % CLASSES;
    offsets[i + 1] = (int64_t)(i + 1) * STEPS;
    wave(values + i * STEPS, i % CLASSES);
  }
  data.values = values;
  data.offsets = offsets;
  data.labels = labels;
  data.class_names = names;
  check(rotrnn_fit(&data, &options, &model, &report));
  printf("left out: accuracy %.3f\n", report.accuracy);

  check(rotrnn_stream_new(model, &stream));
  wave(fresh, 2);
  for (t = 0; t < STEPS; ++t) {
    check(rotrnn_stream_push(stream, fresh + t, 1));
    if ((t + 1) % 20 != 0) continue;
    check(rotrnn_stream_answer(stream, answer, CLASSES));
    for (best = 0, i = 1; i < CLASSES; ++i) {
      if (answer[i] > answer[best]) best = i;
    }
    printf("after %d steps: %s, %.2f\n", t + 1, rotrnn_model_class_name(model, best), answer[best]);
  }
  rotrnn_stream_free(stream);
  rotrnn_model_free(model);
  return 0;
}
