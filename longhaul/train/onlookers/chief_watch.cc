#include "longhaul/train/onlookers/chief_watch.h"

#include <optional>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/io/process/process_identity.h"

namespace longhaul {

bool ChiefWatch::is_there(FileSystem& files, const std::string& directory, Seconds now) {
  std::optional<OwnerRecord> owner;
  try {
    owner = read_owner(files, directory);
  } catch (const Error& error) {
    log_debug("{}", error.what());
  }
  if (!owner) return false;
  if (owner->token != token_ || owner->heartbeat != heartbeat_) {
    token_ = owner->token;
    heartbeat_ = owner->heartbeat;
    changed_at_ = now;
  }
  last_ = describe(*owner);
  const ProcessState state = state_of(owner->process);
  if (state != ProcessState::kUnknown) return state == ProcessState::kRunning;
  return now - changed_at_ <= Seconds{owner->limit};
}

}  // namespace longhaul
