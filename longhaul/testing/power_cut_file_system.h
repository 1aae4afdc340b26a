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
#include "longhaul/io/files/file.h"

namespace longhaul::testing {

// Which unsynced changes survive a power cut. Synced changes always survive.
struct PowerCut {
  enum class Leaves {
    kNothing,    // no change
    kAll,        // every change
    kNames,      // all name changes, but no contents: a new file is empty
    kContents,   // all contents, but no name changes
    kAdditions,  // new names, including those that replace old ones, but no removals
    kRemovals,   // removed names, but no new ones
    kFirst,      // the name changes up to a random one, in order, as on a journaling file system
    kSome,       // a random subset of the name changes, and a torn part of each file's contents
  };
  Leaves leaves = Leaves::kNothing;
  uint64_t seed = 0;  // for kFirst and kSome

  // One cut for each of the first six kinds, then `samples` cuts for kFirst and as many for kSome.
  static std::vector<PowerCut> all(int samples);
};

// A disk in memory on which the power can be cut. It tracks the contents of each file at its last sync(), and the files
// created, linked, renamed and removed in each directory since its last sync_directory().
//
//   PowerCutFileSystem disk;
//   FaultyFileSystem machine(disk);                          // stops at its n-th operation
//   machine.fail_operation(n, FaultyFileSystem::Fault::kForGood);
//   ... a program writes to `machine` ...
//   auto after = disk.after({.leaves = PowerCut::Leaves::kNothing});   // what a restart finds
//
// It is stricter than real disks: a file's sync() does not make its name durable, not even for a new file. New
// directories are durable immediately, because the real file system syncs their parents. Renames are atomic. Appended
// bytes reach the kernel immediately. Time advances by a millisecond with each change, and by two minutes during a
// power cut. Files cannot be locked.
//
// Any thread may call. Files must not be used after the file system is destroyed.
class PowerCutFileSystem : public FileSystem {
 public:
  // Returns the disk as a restart finds it when the power is back. This object does not change, so a test can ask for
  // all possible outcomes of one cut.
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
    std::string name, removed;  // the new name and the removed one; either may be empty
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
