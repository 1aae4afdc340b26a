#include "longhaul/checkpoint/retention/disk_room.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

uint64_t string_bytes(const Tensor& strings) {
  constexpr uint64_t kChecksum = 4, kLongestLength = 10;
  uint64_t bytes = kChecksum;
  for (const std::string& string : strings.flat<std::string>()) bytes += kLongestLength + string.size();
  return bytes;
}

// A file system that does not tell is taken to have room: what it has not, the writing finds out.
uint64_t free_bytes_if_known(FileSystem& files, const std::string& directory) {
  try {
    return files.free_bytes(directory);
  } catch (const Error& error) {
    log_debug("cannot tell how much room there is for checkpoints: {}", error.what());
    return UINT64_MAX;
  }
}

void remove_what_nobody_needs(FileSystem& files, const std::string& prefix, const std::function<void()>& remove_old) {
  check_directory_owner(files, prefix);
  remove_stale_temporaries(files, prefix);
  remove_corrupt_sets(files, directory_name(prefix), 0);
  remove_old();
}

}  // namespace

uint64_t stored_bytes(const std::vector<Tensor>& values) {
  uint64_t bytes = 0;
  for (const Tensor& value : values) bytes += value.dtype() == kString ? string_bytes(value) : value.size_bytes();
  return bytes;
}

bool is_disk_full(const Error& error) {
  const std::string_view text = error.what();
  const auto says = [&](int error_number) {
    return text.find(std::generic_category().message(error_number)) != text.npos;
  };
  return error.code() == Code::kResourceExhausted && (says(ENOSPC) || says(EDQUOT));
}

void make_room(FileSystem& files, const std::string& prefix, uint64_t data_bytes, const Dispensable& dispensable) {
  const std::string directory = directory_name(prefix);
  const uint64_t need = data_bytes + data_bytes / 64 + (uint64_t{1} << 20);
  uint64_t room = 0;
  const auto fits = [&] {
    room = free_bytes_if_known(files, directory);
    return room >= need;
  };
  if (fits()) return;
  log_warning("{} needs {} bytes, but the disk has {} free: removing files that are no longer needed first", prefix,
              need, room);
  remove_what_nobody_needs(files, prefix, dispensable.remove_old);
  if (fits()) return;
  dispensable.remove_oldest(need - room, fits);
  if (fits()) return;
  throw ResourceExhaustedError(
      fmt::format("{} needs {} bytes, but the disk has {} free: nothing was written. Make room, or keep fewer "
                  "checkpoints (max_to_keep)",
                  prefix, need, room));
}

}  // namespace longhaul
