#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/file.h"

namespace longhaul::testing {

// What a power cut leaves of that which nobody had synced. What was synced always stays.
struct PowerCut {
  enum class Leaves {
    kNothing,    // the files as they were at their last sync, under the names that their directories had at theirs
    kAll,        // the disk was just done
    kNames,      // what became of names, while contents are those of the last sync: empty, for a new file
    kContents,   // the other way round
    kAdditions,  // new names, in place of old ones too, but no removals
    kRemovals,   // removals of names, but no new ones
    kFirst,      // the changes of names in their order, up to one of them, as a file system with a journal does it
    kSome,       // of each change of a name this or that; of each file's contents a torn part
  };
  Leaves leaves = Leaves::kNothing;
  uint64_t seed = 0;  // for kFirst and kSome

  // Each of the first six, then `samples` of kFirst and as many of kSome.
  static std::vector<PowerCut> all(int samples);
};

// A disk in memory on which the power can be cut. Of each file it knows what was there at its last sync(), of each
// directory which files were made, linked, renamed and removed since its last sync_directory().
//
//   PowerCutFileSystem disk;
//   FaultyFileSystem machine(disk);                          // which stops at its n-th operation
//   machine.fail_operation(n, FaultyFileSystem::Fault::kForGood);
//   ... a program writes to `machine` ...
//   auto after = disk.after({.leaves = PowerCut::Leaves::kNothing});   // what a restart finds
//
// Stricter than a disk has to be: a file's sync() does not make its name durable, not even a new one. Directories that
// are made are durable at once: the real file system syncs their parents. A rename happens or does not, whole. What
// was appended is with the kernel at once. Times go on by a millisecond with each change, and by two minutes until the
// power is back. There are no locks.
//
// Any thread. Files must not be used when the file system is gone.
class PowerCutFileSystem : public FileSystem {
 public:
  // The disk as it is found when the power is back. This one goes on as if nothing had happened: each cut that one
  // moment may end in can be asked for.
  std::unique_ptr<PowerCutFileSystem> after(const PowerCut& cut) const;

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists = IfExists::kTruncate) override;
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  bool exists(const std::string& path) override;
  bool is_directory(const std::string& path) override;
  double modified_at(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void make_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void link(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  uint64_t free_bytes(const std::string&) override { return uint64_t{1} << 40; }

 private:
  struct Contents {
    std::string now, synced;
    double modified_at = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Contents>>;
  struct Change {
    std::string name, removed;  // one that is new, and one that is gone, or none
    std::shared_ptr<Contents> contents;
  };
  class Writer;
  class Reader;

  static void apply(const Change& change, Names& names);
  static bool survives(const Change& change, size_t number, size_t first, PowerCut::Leaves leaves,
                       std::mt19937_64& random);
  static std::string contents_after(const Contents& contents, PowerCut::Leaves leaves, std::mt19937_64& random);
  static std::string torn(const Contents& contents, std::mt19937_64& random);
  void make(Change change) REQUIRES(mutex_);
  std::shared_ptr<Contents> find(const char* operation, const std::string& path) const REQUIRES(mutex_);
  double tick() REQUIRES(mutex_) { return time_ += 0.001; }

  mutable Mutex mutex_;
  Names names_ GUARDED_BY(mutex_), synced_names_ GUARDED_BY(mutex_);
  std::vector<Change> unsynced_ GUARDED_BY(mutex_);  // oldest first
  std::set<std::string> directories_ GUARDED_BY(mutex_);
  double time_ GUARDED_BY(mutex_) = 1.6e9;
};

}  // namespace longhaul::testing
