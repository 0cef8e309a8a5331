#include "rotrnn/data/formats/folders/audio_folder.h"

#include <utility>

#include "rotrnn/data/formats/folders/class_folder.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/io/formats/audio.h"

namespace rotrnn {

void read_audio_folder(const ReadRequest& request, RecordWriter& out) {
  require_target(request.options, {TaskTarget::label, TaskTarget::value, TaskTarget::forecast});
  const ClassFolder files(request, {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aiff",
                                    ".aif", ".aifc", ".au", ".snd", ".w64", ".rf64", ".caf"});
  files.visit([&](Record record, const std::string& where, std::string_view bytes) {
    const Audio audio = parse_audio(bytes, where);
    if (audio.samples.empty()) {
      out.form({Element::i16, audio.channels, kPcmScale, 1, audio.sample_rate}, where);
      out.add_values(std::move(record), std::span<const int16_t>(audio.pcm));
    } else {
      out.form({Element::f32, audio.channels, 1, 1, audio.sample_rate}, where);
      out.add_values(std::move(record), std::span<const float>(audio.samples));
    }
  });
}

}  // namespace rotrnn
