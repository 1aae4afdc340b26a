#pragma once

#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/saver.h"

namespace longhaul {

// Takes a checkpoint at `save_path`, with the global step in its name if there is one, and returns its prefix. The step
// that the saver has saved or restored last is not written again. An event file, if there is one, is told of what was
// written, if it has a step.
std::string save_once(Saver& saver, Session& session, const std::string& save_path, const Output& global_step,
                      FileWriter* writer);

}  // namespace longhaul
