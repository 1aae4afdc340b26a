#include "longhaul/train/saving/startup_report.h"

#include "longhaul/base/log.h"
#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/process/process_limits.h"
#include "longhaul/train/saved_state/saved_size.h"

namespace longhaul {
namespace {

void warn_of_little_room(FileSystem& files, const std::string& directory, uint64_t needed) {
  try {
    const uint64_t room = files.free_bytes(directory);
    if (room >= needed) return;
    log_warning(
        "The disk of {} has {} free, but two checkpoints need {}: make room, or set save_model_secs to 0 to train "
        "without checkpoints",
        directory, size_text(room), size_text(needed));
  } catch (const Error& error) {
    log_debug("the free disk space for checkpoints is unknown: {}", error.what());
  }
}

void warn_of_little_memory(const std::string& root, uint64_t needed) {
  const std::optional<uint64_t> limit = memory_limit(root);
  if (!limit || *limit >= needed) return;
  log_warning(
      "The process may use {} of memory (memory.max of its control group), but its variables and a snapshot of them "
      "need {}: raise the limit, or bound SessionOptions::snapshot_memory; steps then wait while a checkpoint is "
      "written",
      size_text(*limit), size_text(needed));
}

std::string with_replaced(std::string text, const std::string& part, const std::string& by) {
  const size_t at = text.find(part);
  return at == std::string::npos ? text : text.replace(at, part.size(), by);
}

}  // namespace

void report_checkpoint_costs(const Saver& saver, const std::string& directory, const std::string& root) {
  const SavedSize size = saved_size(saver.saved_tensors());
  log_info(
      "A checkpoint of {} variables takes {}{} in {}, and up to the same amount of memory, which is kept between saves "
      "(SessionOptions::snapshot_memory bounds it)",
      saver.saved_tensors().size(), size.is_all ? "" : "at least ", size_text(size.bytes), directory);
  warn_of_little_room(saver.files(), directory, 2 * size.bytes);
  warn_of_little_memory(root, 2 * size.bytes);
}

void check_writable(FileSystem& files, const std::string& directory, const std::string& option) {
  const std::string probe = temporary_path(join_path(directory, "write_test"));
  try {
    files.make_directories(directory);
    files.create(probe, FileSystem::IfExists::kFail)->close();
  } catch (const Error& error) {
    throw_error(error.code(), fmt::format("{} {} cannot be written to: {}", option, directory,
                                          with_replaced(error.what(), probe, "a file in it")));
  }
  files.remove(probe);
}

}  // namespace longhaul
