#include "rotrnn/data/text_folder.h"

#include <utility>

#include "rotrnn/data/class_folder.h"
#include "rotrnn/data/own_files.h"
#include "rotrnn/data/set_files.h"
#include "rotrnn/io/utf8.h"

namespace rotrnn {

void read_text_folder(const ReadRequest& request, RecordWriter& out) {
  require_target(request.options, {TaskTarget::label, TaskTarget::value});
  const ClassFolder files(request, {".txt", ".text", ".md"});
  out.form({Element::u8, 1, 1, 1}, request.path.string());
  files.visit([&](Record record, const std::string& where, std::string_view bytes) {
    check_text(bytes, where);
    const std::string_view text = without_bom(bytes);
    check_text(text, where);  // a mark and nothing else
    out.add_text(std::move(record), text);
  });
}

}  // namespace rotrnn
