#include "longhaul/train/save_once.h"

#include "longhaul/train/run_events.h"

namespace longhaul {

std::string save_once(Saver& saver, Session& session, const std::string& save_path, const Output& global_step,
                      FileWriter* writer) {
  const std::string before = saver.last_saved();
  const StepSource step = global_step.valid() ? StepSource(global_step) : StepSource();
  const std::string prefix = saver.save(session, save_path, step, {.skip_if_saved = true});
  if (writer != nullptr && !step.is_none() && prefix != before) write_checkpoint_taken(*writer, save_path, prefix);
  return prefix;
}

}  // namespace longhaul
