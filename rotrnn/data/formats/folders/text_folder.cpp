#include "rotrnn/data/formats/folders/text_folder.h"

#include <utility>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/data/formats/folders/class_folder.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/tasks/set_files.h"

namespace rotrnn {

void read_text_folder(const ReadRequest& request, RecordWriter& out) {
  require_target(request.options, {TaskTarget::label, TaskTarget::value});
  const ClassFolder files(request, {".txt", ".text", ".md"});
  out.form({Element::u8, 1, 1, 1}, request.path.string());
  files.visit([&](Record record, const std::string& where, std::string_view bytes) {
    check_text(bytes, where);
    const std::string_view text = without_bom(bytes);
    check_text(text, where);  // refuses a mark and nothing else
    out.add_text(std::move(record), text);
  });
}

}  // namespace rotrnn
