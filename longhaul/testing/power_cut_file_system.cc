#include "longhaul/testing/power_cut_file_system.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul::testing {
namespace {

using Leaves = PowerCut::Leaves;

constexpr size_t kSector = 512;
constexpr double kDark = 120;  // seconds until the power is back

bool heads(std::mt19937_64& random) {
  return random() % 2 == 0;
}

}  // namespace

std::vector<PowerCut> PowerCut::all(int samples) {
  std::vector<PowerCut> cuts;
  for (const Leaves leaves :
       {Leaves::kNothing, Leaves::kAll, Leaves::kNames, Leaves::kContents, Leaves::kAdditions, Leaves::kRemovals}) {
    cuts.push_back({leaves, 0});
  }
  for (int i = 0; i < samples; ++i) {
    for (const Leaves leaves : {Leaves::kFirst, Leaves::kSome}) cuts.push_back({leaves, static_cast<uint64_t>(i)});
  }
  return cuts;
}

class PowerCutFileSystem::Writer : public WritableFile {
 public:
  Writer(PowerCutFileSystem& disk, std::shared_ptr<Contents> contents) : disk_(disk), contents_(std::move(contents)) {}

  void append(std::string_view data) override {
    MutexLock lock(disk_.mutex_);
    contents_->now += data;
    contents_->modified_at = disk_.tick();
  }
  void flush() override {}
  void sync() override {
    MutexLock lock(disk_.mutex_);
    contents_->synced = contents_->now;
  }
  void close() override {}

 private:
  PowerCutFileSystem& disk_;
  const std::shared_ptr<Contents> contents_;
};

class PowerCutFileSystem::Reader : public ReadableFile {
 public:
  Reader(const PowerCutFileSystem& disk, std::shared_ptr<Contents> contents)
      : disk_(disk), contents_(std::move(contents)) {}

  uint64_t size() const override {
    MutexLock lock(disk_.mutex_);
    return contents_->now.size();
  }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    MutexLock lock(disk_.mutex_);
    return offset < contents_->now.size() ? contents_->now.copy(out, count, offset) : 0;
  }

 private:
  const PowerCutFileSystem& disk_;
  const std::shared_ptr<Contents> contents_;
};

void PowerCutFileSystem::apply(const Change& change, Names& names) {
  const auto removed = names.find(change.removed);
  const bool is_moved = change.contents != nullptr;
  if (removed != names.end() && (!is_moved || removed->second == change.contents)) names.erase(removed);
  if (is_moved) names[change.name] = change.contents;
}

void PowerCutFileSystem::make(Change change) {
  apply(change, names_);
  unsynced_.push_back(std::move(change));
  tick();
}

std::shared_ptr<PowerCutFileSystem::Contents> PowerCutFileSystem::find(const char* operation,
                                                                       const std::string& path) const {
  const auto found = names_.find(path);
  if (found == names_.end()) throw NotFoundError(fmt::format("{} {}: No such file or directory", operation, path));
  return found->second;
}

std::unique_ptr<WritableFile> PowerCutFileSystem::create(const std::string& path, IfExists if_exists) {
  MutexLock lock(mutex_);
  if (!directories_.contains(directory_name(path))) {
    throw NotFoundError(fmt::format("create {}: its directory was not made", path));
  }
  const auto found = names_.find(path);
  if (found == names_.end()) {
    const auto contents = std::make_shared<Contents>(Contents{.modified_at = tick()});
    make({.name = path, .contents = contents});
    return std::make_unique<Writer>(*this, contents);
  }
  if (if_exists == IfExists::kFail) throw AlreadyExistsError(fmt::format("create {}: File exists", path));
  found->second->now.clear();
  found->second->modified_at = tick();
  return std::make_unique<Writer>(*this, found->second);
}

std::unique_ptr<ReadableFile> PowerCutFileSystem::open(const std::string& path) {
  MutexLock lock(mutex_);
  return std::make_unique<Reader>(*this, find("open", path));
}

bool PowerCutFileSystem::exists(const std::string& path) {
  MutexLock lock(mutex_);
  return names_.contains(path) || directories_.contains(path);
}

bool PowerCutFileSystem::is_directory(const std::string& path) {
  MutexLock lock(mutex_);
  return directories_.contains(path);
}

double PowerCutFileSystem::modified_at(const std::string& path) {
  MutexLock lock(mutex_);
  return find("stat", path)->modified_at;
}

std::vector<std::string> PowerCutFileSystem::list(const std::string& directory) {
  MutexLock lock(mutex_);
  if (!directories_.contains(directory)) throw NotFoundError(fmt::format("list {}: No such directory", directory));
  std::vector<std::string> names;
  for (const auto& [path, contents] : names_) {
    if (directory_name(path) == directory) names.push_back(base_name(path));
  }
  for (const std::string& path : directories_) {
    if (path != directory && directory_name(path) == directory) names.push_back(base_name(path));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void PowerCutFileSystem::make_directories(const std::string& path) {
  MutexLock lock(mutex_);
  for (std::string each = path; directories_.insert(each).second && each != directory_name(each);) {
    each = directory_name(each);
  }
}

void PowerCutFileSystem::rename(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  const auto contents = find("rename", from);
  const auto there = names_.find(to);
  if (there != names_.end() && there->second == contents) return;  // two names of one file: POSIX does nothing
  make({.name = to, .removed = from, .contents = contents});
}

void PowerCutFileSystem::link(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  const auto contents = find("link", from);
  if (names_.contains(to)) throw AlreadyExistsError(fmt::format("link {} to {}: File exists", from, to));
  make({.name = to, .contents = contents});
}

void PowerCutFileSystem::remove(const std::string& path) {
  MutexLock lock(mutex_);
  if (directories_.erase(path) > 0) return;
  find("remove", path);
  make({.removed = path});
}

void PowerCutFileSystem::sync_directory(const std::string& path) {
  MutexLock lock(mutex_);
  std::vector<Change> others;
  for (Change& change : unsynced_) {
    const std::string& name = change.contents ? change.name : change.removed;
    if (directory_name(name) == path) {
      apply(change, synced_names_);
    } else {
      others.push_back(std::move(change));
    }
  }
  unsynced_ = std::move(others);
}

bool PowerCutFileSystem::survives(const Change& change, size_t number, size_t first, Leaves leaves,
                                  std::mt19937_64& random) {
  switch (leaves) {
    case Leaves::kNothing:
    case Leaves::kContents: return false;
    case Leaves::kAll:
    case Leaves::kNames: return true;
    case Leaves::kAdditions: return change.contents != nullptr;
    case Leaves::kRemovals: return change.contents == nullptr;
    case Leaves::kFirst: return number < first;
    case Leaves::kSome: return heads(random);
  }
  return false;
}

// A part of what came since the last sync: its beginning, or some of its sectors, the others being zero.
std::string PowerCutFileSystem::torn(const Contents& contents, std::mt19937_64& random) {
  const bool only_grew = contents.now.starts_with(contents.synced);
  if (!only_grew) return heads(random) ? contents.synced : contents.now.substr(0, random() % (contents.now.size() + 1));
  const size_t begin = contents.synced.size();
  if (heads(random)) return contents.now.substr(0, begin + random() % (contents.now.size() - begin + 1));
  std::string bytes = contents.now;
  for (size_t at = begin; at < bytes.size(); at += kSector - at % kSector) {
    if (heads(random)) continue;
    const size_t end = std::min(bytes.size(), at + kSector - at % kSector);
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(end), '\0');
  }
  return bytes;
}

std::string PowerCutFileSystem::contents_after(const Contents& contents, Leaves leaves, std::mt19937_64& random) {
  switch (leaves) {
    case Leaves::kAll:
    case Leaves::kContents: return contents.now;
    case Leaves::kFirst:
    case Leaves::kSome: return torn(contents, random);
    default: return contents.synced;
  }
}

std::unique_ptr<PowerCutFileSystem> PowerCutFileSystem::after(const PowerCut& cut) const {
  std::mt19937_64 random(cut.seed);
  auto disk = std::make_unique<PowerCutFileSystem>();
  MutexLock lock(mutex_);
  MutexLock its_lock(disk->mutex_);
  Names names = synced_names_;
  const size_t first = random() % (unsynced_.size() + 1);
  for (size_t i = 0; i < unsynced_.size(); ++i) {
    if (survives(unsynced_[i], i, first, cut.leaves, random)) apply(unsynced_[i], names);
  }
  std::map<const Contents*, std::shared_ptr<Contents>> copies;  // hard links stay such
  for (const auto& [name, contents] : names) {
    std::shared_ptr<Contents>& copy = copies[contents.get()];
    if (!copy) {
      const std::string bytes = contents_after(*contents, cut.leaves, random);
      copy = std::make_shared<Contents>(Contents{bytes, bytes, contents->modified_at});
    }
    disk->names_[name] = copy;
    disk->directories_.insert(directory_name(name));
  }
  disk->synced_names_ = disk->names_;
  disk->directories_.insert(directories_.begin(), directories_.end());
  disk->time_ = time_ + kDark;
  return disk;
}

}  // namespace longhaul::testing
