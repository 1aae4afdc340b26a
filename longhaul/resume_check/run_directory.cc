#include "longhaul/resume_check/run_directory.h"

#include <algorithm>

#include "longhaul/base/excerpt.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {
namespace {

constexpr int kDepth = 3;
constexpr size_t kTailBytes = 16384;
constexpr char kTrainerPosition[] = "trainer/position";
constexpr int64_t kPositionNumbers = 12;  // longhaul/trainer/loop_position.h
constexpr size_t kBatch = 5, kEpochSize = 6;

void add_checkpoints(FileSystem& files, const std::string& directory, int depth, std::vector<FoundCheckpoint>* found) {
  for (FoundCheckpoint& checkpoint : find_checkpoints(files, directory, "")) found->push_back(std::move(checkpoint));
  if (depth == 0) return;
  for (const std::string& name : names_in(files, directory)) {
    const std::string inner = join_path(directory, name);
    if (files.is_directory(inner)) add_checkpoints(files, inner, depth - 1, found);
  }
}

}  // namespace

std::vector<FoundCheckpoint> checkpoints_below(FileSystem& files, const std::string& directory) {
  std::vector<FoundCheckpoint> found;
  add_checkpoints(files, directory, kDepth, &found);
  return found;
}

std::map<std::string, FoundCheckpoint> newest_below(FileSystem& files, const std::string& directory) {
  std::map<std::string, FoundCheckpoint> newest;
  for (FoundCheckpoint& checkpoint : checkpoints_below(files, directory)) {
    const std::string base = split_step(checkpoint.prefix).base;
    newest[base.substr(directory.size() + 1)] = std::move(checkpoint);  // the later step comes later
  }
  return newest;
}

std::optional<FoundCheckpoint> last_committed(FileSystem& files, const std::string& directory) {
  const std::vector<FoundCheckpoint> all = checkpoints_below(files, directory);
  const auto is_earlier = [](const FoundCheckpoint& a, const FoundCheckpoint& b) {
    return a.modified_at != b.modified_at ? a.modified_at < b.modified_at : a.step < b.step;
  };
  const auto last = std::max_element(all.begin(), all.end(), is_earlier);
  return last == all.end() ? std::nullopt : std::optional(*last);
}

std::vector<FoundCheckpoint> CheckpointWatch::look() {
  std::vector<FoundCheckpoint> fresh;
  for (const FoundCheckpoint& checkpoint : checkpoints_below(files_, directory_)) {
    const auto [known, is_new] = seen_.emplace(checkpoint.prefix, checkpoint.modified_at);
    if (!is_new && known->second == checkpoint.modified_at) continue;
    known->second = checkpoint.modified_at;
    fresh.push_back(checkpoint);
  }
  return fresh;
}

std::optional<EpochPosition> epoch_position_in(FileSystem& files, const std::string& prefix) {
  const BundleReader reader(files, prefix);
  const BundleReader::Entry* entry = reader.find(kTrainerPosition);
  if (entry == nullptr || entry->dtype != kDouble) return std::nullopt;
  const Tensor position = reader.read(kTrainerPosition);
  if (position.num_elements() != kPositionNumbers) return std::nullopt;
  const auto count = [&](size_t i) {
    const double number = position.flat<double>()[i];
    return number >= 0 && number <= 0x1p53 ? static_cast<int64_t>(number) : 0;
  };
  return EpochPosition{.size = count(kEpochSize), .taken = count(kBatch)};
}

std::string last_lines(FileSystem& files, const std::string& path, size_t most) {
  if (!files.exists(path)) return "";
  const auto file = files.open(path);
  const uint64_t size = file->size();
  std::string tail(std::min<uint64_t>(size, kTailBytes), '\0');
  tail.resize(file->read(size - tail.size(), tail.data(), tail.size()));
  while (tail.ends_with('\n')) tail.pop_back();
  std::string lines;
  for (size_t count = 0; count < most && !tail.empty(); ++count) {
    const size_t end = tail.rfind('\n');
    lines = "  " + excerpt(tail.substr(end == std::string::npos ? 0 : end + 1)) + "\n" + lines;
    tail.resize(end == std::string::npos ? 0 : end);
  }
  return lines;
}

}  // namespace longhaul
