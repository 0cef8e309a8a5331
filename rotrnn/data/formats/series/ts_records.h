#pragma once

#include "rotrnn/data/records.h"

// The .ts files of the UCR and UEA archives.

namespace rotrnn {

/// Reads one .ts file, or those of a folder or archive: NAME_TRAIN.ts and NAME_TEST.ts are the
/// splits that their names say. Classes with @classLabel, values with @targetLabel.
void read_ts_records(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
