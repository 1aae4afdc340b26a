#include "longhaul/io/lock/directory_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/io/lock/directory_claims.h"

namespace longhaul {
namespace {

DirectoryClaims& claims() {
  return DirectoryClaims::of_this_process();
}

std::string lock_path(const std::string& directory) {
  return join_path(directory, "chief.lock");
}

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// The time of the file system's own clock: those of two machines may differ.
double time_of(FileSystem& files, const std::string& directory) {
  const std::string probe = fmt::format("{}.probe{}", owner_path(directory), new_token());
  files.create(probe, FileSystem::IfExists::kFail)->close();
  const double now = files.modified_at(probe);
  files.remove(probe);
  return now;
}

constexpr Seconds kEver{std::numeric_limits<double>::infinity()};

// Of one who removes its record meanwhile: for ever.
Seconds silence(FileSystem& files, const std::string& directory) {
  const double now = time_of(files, directory);
  try {
    return Seconds(now - files.modified_at(owner_path(directory)));
  } catch (const NotFoundError&) {
    return kEver;
  }
}

// What to do about an owner of another machine that may be dead.
std::string advice_to_wait(const std::string& directory, Seconds limit, Seconds silent) {
  constexpr Seconds kToCome{-1};  // a beat in this very moment is no reason for it
  if (silent < kToCome) {
    return fmt::format(
        "Stop it there first. If it is dead, remove {} by hand: the time of that file is {:.0f} s in the future, "
        "probably because of a wrong clock, so waiting may not help",
        owner_path(directory), -silent.count());
  }
  return fmt::format(
      "Stop it there first. If it is dead, wait: the directory is free {:g} s after the last heartbeat (in {:.0f} s)",
      limit.count(), std::max((limit - silent).count(), 1.0));
}

// A record that was written, and not renamed, by a process that has ended.
bool is_of_ended_process(FileSystem& files, const std::string& path) {
  constexpr uint64_t kMostBytes = 4096;
  try {
    return state_of(parse_owner(read_file(files, path, kMostBytes), path).process) == ProcessState::kGone;
  } catch (...) {
    return false;  // not known, perhaps not yet written
  }
}

// What was to become a record, or asked for the time, when its process was killed. Younger ones may be in use: returns
// whether there are none.
bool remove_remains(FileSystem& files, const std::string& directory, Seconds limit) {
  const std::string record = owner_path(directory);
  const double now = files.modified_at(record);
  bool are_all_gone = true;
  for (const std::string& name : files.list(directory)) {
    const bool is_ours = name.starts_with(base_name(record) + ".tmp") || name.starts_with(base_name(record) + ".probe");
    if (!is_ours || is_own_temporary(name)) continue;
    const std::string path = join_path(directory, name);
    try {
      static_cast<void>(files.open(path));  // throws unless it is a regular file
      const bool is_old = Seconds(now - files.modified_at(path)) > limit;
      if (is_old || is_of_ended_process(files, path)) {
        files.remove(path);
      } else {
        are_all_gone = false;
      }
    } catch (...) {  // another process may have removed it meanwhile
      log_debug("{} stays: {}", path, message_of(std::current_exception()));
    }
  }
  return are_all_gone;
}

// A file that another machine replaces may fail to be read once (ESTALE).
std::optional<OwnerRecord> read_patiently(FileSystem& files, const std::string& directory) {
  constexpr int kTries = 3;
  for (int i = 1; i < kTries; ++i) {
    try {
      return read_owner(files, directory);
    } catch (const Error&) {
    }
  }
  return read_owner(files, directory);
}

// A damaged one is that of an owner that is dead, or will be found out by its flock.
std::optional<OwnerRecord> find_owner(FileSystem& files, const std::string& directory) {
  try {
    return read_patiently(files, directory);
  } catch (const DamagedOwnerError& error) {
    log_warning("the owner record in {} is damaged and is ignored: {}", directory, error.what());
    return std::nullopt;
  }
}

void wait(Clock& clock, Seconds time) {
  Mutex mutex;
  CondVar nobody;
  const Seconds end = clock.now() + time;
  MutexLock lock(mutex);
  // wait: polls: a heartbeat of another machine notifies nobody
  for (Seconds left = time; left > Seconds{0}; left = end - clock.now()) clock.wait_for(nobody, mutex, left);
}

[[noreturn]] void refuse(const std::string& directory, const std::string& owner, const std::string& advice) {
  throw DirectoryLockedError(
      fmt::format("{} already has a chief: {}. {}, or give this run another directory. Of the tasks of a cluster "
                  "one alone is the chief (is_chief).",
                  directory, owner, advice));
}

[[noreturn]] void refuse_for_flock(FileSystem& files, const std::string& directory) {
  const auto owner = find_owner(files, directory);
  if (!owner) refuse(directory, "one that has not written its owner record yet", "Try again in a moment");
  const bool is_this = claims().holds(directory, owner->token);
  const bool is_gone = state_of(owner->process) == ProcessState::kGone;
  refuse(directory, describe(*owner),
         is_this   ? "It is this process: stop its training run first"
         : is_gone ? fmt::format("That process has ended, but a child process of it still has {} open: stop the child",
                                 lock_path(directory))
                   : "Stop that process first");
}

// Called where a lock was found to be another's; `now` is who has it.
[[noreturn]] void report_loss(const std::string& directory, const OwnerRecord& before,
                              const std::optional<OwnerRecord>& now) {
  const std::string who =
      now ? fmt::format("now has another chief: {}", describe(*now))
          : fmt::format("no longer has {}: another chief took over and ended, or somebody removed the file",
                        owner_path(directory));
  throw DirectoryLostError(
      fmt::format("{} {}. The previous chief (process {} on host {}) writes nothing more there{}. To continue, restart "
                  "it when the directory is free.",
                  directory, who, before.process.pid, before.process.host, now ? ": it was silent for too long" : ""));
}

[[noreturn]] void report_away(const std::string& directory, const std::string& what) {
  throw DirectoryAwayError(fmt::format("{}: {}. Nothing is written there until it is back", directory, what));
}

[[noreturn]] void report_another(const std::string& directory, const DirectoryId& expected,
                                 const std::string& its_record) {
  const auto found = directory_id(directory);
  report_away(directory,
              fmt::format("another directory has this name now (was the expected one unmounted or moved?): expected {} "
                          "with the {} of this chief, found {} {}",
                          describe(expected), owner_path(""), found ? describe(*found) : "a directory", its_record));
}

// In the directory that was locked the record is not there: lost, or about to be removed.
class RecordGoneError : public DirectoryAwayError {
 public:
  explicit RecordGoneError(const std::string& directory)
      : DirectoryAwayError(fmt::format("{} no longer exists: the directory is being removed, or another chief took "
                                       "over and ended. Nothing is written there until the file is back",
                                       owner_path(directory))) {}
};

bool has_another_place(const std::string& directory, const DirectoryClaims::Claim& claim) {
  if (!claim.place) return false;
  const auto now = directory_id(directory);
  return now && *now != *claim.place;
}

// A remount gives another device alone.
bool is_another_directory(const std::string& directory, const DirectoryClaims::Claim& claim) {
  if (!claim.place) return false;
  const auto now = directory_id(directory);
  return now && (now->inode != claim.place->inode || now->born != claim.place->born);
}

// A copy has the record, and not the flock: a second chief could come there. Where there are no flocks the record is
// all that counts: such file systems may give a directory another inode whenever it is looked up.
bool is_copy(const std::string& directory, const DirectoryClaims::Claim& claim) {
  return claim.owner.has_flock && is_another_directory(directory, claim);
}

bool has_record_of(FileSystem& files, const std::string& directory, const OwnerRecord& owner) {
  const auto now = read_patiently(files, directory);
  return now && now->token == owner.token;
}

// Of a directory that is held.
std::optional<OwnerRecord> read_held(FileSystem& files, const std::string& directory,
                                     const DirectoryClaims::Claim& claim) {
  try {
    return read_patiently(files, directory);
  } catch (const DamagedOwnerError&) {
    if (has_another_place(directory, claim)) report_another(directory, *claim.place, "with a damaged one");
    throw;
  } catch (const Error& error) {
    report_away(directory, fmt::format("cannot tell who its chief is: {}", error.what()));
  }
}

void check_held(FileSystem& files, const std::string& directory, const DirectoryClaims::Claim& claim) {
  const auto now = read_held(files, directory, claim);
  if (now && now->token == claim.owner.token) {
    if (is_copy(directory, claim)) report_another(directory, *claim.place, "with a copy of it");
    return;
  }
  if (!now && !files.is_directory(directory))
    report_away(directory, "the directory is gone; it may have been unmounted or moved");
  if (has_another_place(directory, claim)) {
    report_another(directory, *claim.place, now ? "with that of " + describe(*now) : "without one");
  }
  if (!now) throw RecordGoneError(directory);
  report_loss(directory, claim.owner, now);
}

void check_claim(FileSystem& files, const std::string& directory, const DirectoryClaims::Claim& claim) {
  if (claim.is_held) return check_held(files, directory, claim);
  const auto now = read_patiently(files, directory);
  const bool is_taken_anew_here = now && now->process == this_process();
  if (!now || now->token == claim.owner.token || is_taken_anew_here) return;
  report_loss(directory, claim.owner, now);
}

void warn_once_of_no_flock(const std::string& directory) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  log_warning("{}: the file system has no flock(); only {} and its heartbeat keep a second chief out", directory,
              owner_path(directory));
}

void check_is_file(FileSystem& files, const std::string& path) {
  if (!files.is_directory(path)) return;
  throw FailedPreconditionError(
      fmt::format("{} is a directory, but must be the file that names its chief: move it away", path));
}

const DirectoryLockOptions& checked(const DirectoryLockOptions& options, const std::string& directory) {
  if (is_owner_limit(options.limit.count())) return options;
  throw InvalidArgumentError(
      fmt::format("{}: the time limit of its lock (lease_secs) is {:g} s, but must be a positive number", directory,
                  options.limit.count()));
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory, const DirectoryLockOptions& options)
    : directory_(strip_file_scheme(directory)), options_(checked(options, directory)) {
  for (const std::string& path : {lock_path(directory_), owner_path(directory_)}) check_is_file(*options_.files, path);
  if (options_.use_flock) take_flock();
  refuse_unless_dead();
  const double now = options_.clock->wall_time();
  owner_ = {.token = new_token(),
            .process = this_process(),
            .has_flock = flock_ != nullptr,
            .limit = options_.limit.count(),
            .since = now};
  write_record(now);
  owner_.heartbeat = now;
  place_ = directory_id(directory_);
  claims().take(directory_, owner_, place_);
  sweep();
}

void DirectoryLock::write_record(double heartbeat) const {
  OwnerRecord beaten = owner_;
  beaten.heartbeat = heartbeat;
  write_owner(*options_.files, directory_, beaten);
}

void DirectoryLock::sweep() {
  try {
    is_swept_ = remove_remains(*options_.files, directory_, options_.limit);
  } catch (...) {  // the directory is taken: nothing may come out of the constructor any more
    log_debug("what earlier chiefs have left in {} stays: {}", directory_, message_of(std::current_exception()));
  }
}

Seconds DirectoryLock::limit_of(const OwnerRecord& owner) const {
  return std::max(options_.limit, Seconds(owner.limit));
}

void DirectoryLock::take_flock() {
  FileLock::Attempt attempt = options_.files->try_lock(lock_path(directory_));
  if (attempt.outcome == FileLock::Outcome::kTaken) {
    if (!is_flock_of_a_dead_machine()) refuse_for_flock(*options_.files, directory_);
    log_warning("{} is still locked by a dead machine; continuing without that lock", lock_path(directory_));
  }
  if (attempt.outcome == FileLock::Outcome::kUnsupported) warn_once_of_no_flock(directory_);
  flock_ = std::move(attempt.lock);
}

// A server of files may keep the locks of a machine that died. Who has just taken the flock has a moment to say so.
bool DirectoryLock::is_flock_of_a_dead_machine() const {
  constexpr Seconds kMoment{1};
  const auto owner = find_owner(*options_.files, directory_);
  const bool is_elsewhere =
      owner && !owner->process.boot_id.empty() && owner->process.boot_id != this_process().boot_id;
  if (!is_elsewhere || silence(*options_.files, directory_) <= limit_of(*owner)) return false;
  wait(*options_.clock, kMoment);
  return find_owner(*options_.files, directory_) == owner;
}

void DirectoryLock::refuse_unless_dead() const {
  const auto owner = find_owner(*options_.files, directory_);
  if (!owner) return;
  const ProcessIdentity here = this_process();
  const ProcessState state = state_of(owner->process);
  if (state == ProcessState::kRunning) {
    if (owner->process != here) refuse(directory_, describe(*owner), "Stop that process first");
    if (!claims().holds(directory_, owner->token)) return;
    refuse(directory_, describe(*owner), "It is this process: stop its training run first");
  }
  if (state == ProcessState::kGone) return;
  const bool is_of_this_machine = !here.boot_id.empty() && here.boot_id == owner->process.boot_id;
  if (is_of_this_machine && owner->has_flock && flock_ != nullptr) return;
  const Seconds limit = limit_of(*owner), silent = silence(*options_.files, directory_);
  if (silent == kEver) return;
  if (silent > limit) {
    log_warning("{}: its chief has been silent for over {:g} s and is considered dead: {}", directory_, limit.count(),
                describe(*owner));
    return;
  }
  refuse(directory_, describe(*owner), advice_to_wait(directory_, limit, silent));
}

DirectoryLock::~DirectoryLock() {
  claims().give_back(owner_);
  try {
    const auto now = read_patiently(*options_.files, directory_);
    const bool is_ours = now && now->token == owner_.token && !is_copy(directory_, {owner_, true, place_});
    if (is_ours) options_.files->remove(owner_path(directory_));
  } catch (...) {
    log_warning("{} could not be removed; it does not hinder the next chief on this machine: {}",
                owner_path(directory_), message_of(std::current_exception()));
  }
}

void DirectoryLock::check() const {
  check_held(*options_.files, directory_, {owner_, true, place_});
}

void DirectoryLock::beat() {
  try {
    check();
    record_gone_since_.reset();
  } catch (const RecordGoneError&) {
    const Seconds now = options_.clock->now();
    if (!record_gone_since_) record_gone_since_ = now;
    if (now - *record_gone_since_ >= options_.limit) report_loss(directory_, owner_, std::nullopt);
    throw;
  } catch (const DirectoryAwayError&) {
    record_gone_since_.reset();
    throw;
  } catch (const DamagedOwnerError& error) {
    log_warning("the owner record of this chief is damaged and is written again: {}", error.what());
  }
  write_record(options_.clock->wall_time());
  if (!is_swept_) sweep();
}

void check_directory_owner(FileSystem& files, const std::string& path) {
  const std::string directory = directory_name(strip_file_scheme(path));
  if (const auto claim = claims().find(directory)) return check_claim(files, directory, *claim);
  std::string below = spelled_directory(directory);
  for (std::string above = directory_name(below); above != below; above = directory_name(below)) {
    const auto claim = claims().find(above);
    if (claim && claim->is_held) return check_held(files, above, *claim);
    below = above;
  }
}

void check_directory_is_there(FileSystem& files, const std::string& directory) {
  const std::string path = strip_file_scheme(directory);
  const auto claim = claims().find(path);
  if (!claim) return;
  if (!files.is_directory(path)) report_away(path, "the directory is gone; it may have been unmounted or moved");
  if (!has_another_place(path, *claim)) return;
  if (is_copy(path, *claim) || !has_record_of(files, path, claim->owner))
    report_another(path, *claim->place, "instead");
}

}  // namespace longhaul
