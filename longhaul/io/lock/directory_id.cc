#include "longhaul/io/lock/directory_id.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

}  // namespace

std::optional<DirectoryId> directory_id(const std::string& directory) {
  struct statx info;
  std::memset(&info, 0, sizeof(info));
  const std::string path = strip_file_scheme(directory);
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_SYNC_AS_STAT, STATX_BASIC_STATS | STATX_BTIME, &info) != 0) {
    return std::nullopt;
  }
  if (!S_ISDIR(info.stx_mode)) return std::nullopt;
  const bool tells_birth = (info.stx_mask & STATX_BTIME) != 0;
  return DirectoryId{.device = ::makedev(info.stx_dev_major, info.stx_dev_minor),
                     .inode = info.stx_ino,
                     .born = tells_birth ? info.stx_btime.tv_sec * kNanoseconds + info.stx_btime.tv_nsec : 0};
}

std::string describe(const DirectoryId& id) {
  return fmt::format("device {}:{}, inode {}", ::major(id.device), ::minor(id.device), id.inode);
}

}  // namespace longhaul
