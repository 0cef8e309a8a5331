#include "rotrnn/data/prepare/prepare.h"

#include "rotrnn/data/prepare/learn.h"

namespace rotrnn {

Preprocessing prepare_text(const TaskOptions& options, const Records& records,
                           std::span<const int64_t> train) {
  return options.tokens == TokenKind::bytes
             ? byte_tokens(records.form, options.max_tokens)
             : learn_characters(records, train, options.min_frequency, options.max_tokens);
}

Preprocessing prepare_values(const TaskOptions& options, const Records& records,
                             std::span<const int64_t> train) {
  if (options.normalisation == Scaling::none) {
    return fixed_scale(records.form, 0, 1, options.max_tokens);
  }
  return learn_scale(records, train, options.normalisation == Scaling::upstream,
                     options.max_tokens);
}

Preprocessing prepare_either(const TaskOptions& options, const Records& records,
                             std::span<const int64_t> train) {
  const bool text = records.form.element == Element::u8 && records.form.scale == 1;
  return text ? prepare_text(options, records, train) : prepare_values(options, records, train);
}

}  // namespace rotrnn
