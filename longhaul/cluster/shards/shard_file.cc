#include "longhaul/cluster/shards/shard_file.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/shard_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

// A file that is written in pieces, before each of which somebody is asked whether it is still wanted.
class AskingFile : public WritableFile {
 public:
  AskingFile(std::unique_ptr<WritableFile> file, const std::function<void()>& ask)
      : file_(std::move(file)), ask_(ask) {}

  void append(std::string_view data) override {
    count(data.size());
    file_->append(data);
  }
  void append_borrowed(std::string_view data, std::shared_ptr<const void> owner) override {
    count(data.size());
    file_->append_borrowed(data, std::move(owner));
  }
  void flush() override { file_->flush(); }
  void sync() override { file_->sync(); }
  void close() override { file_->close(); }

 private:
  void count(uint64_t bytes) {
    constexpr uint64_t kPiece = uint64_t{4} << 20;
    since_asked_ += bytes;
    if (since_asked_ < kPiece) return;
    since_asked_ = 0;
    ask_();
  }

  const std::unique_ptr<WritableFile> file_;
  const std::function<void()>& ask_;
  uint64_t since_asked_ = 0;
};

uint64_t size_of_file(const std::vector<Tensor>& values) {
  uint64_t size = 0;
  for (const Tensor& value : values) size = ShardWriter::offset_for(value.size_bytes(), size) + value.size_bytes();
  return size;
}

proto::WriteShardReply write_values(WritableFile& file, const ShardFile& shard, const std::vector<Tensor>& values) {
  RateLimit limit(shard.max_bytes_per_second, *shard.clock);
  ShardWriter writer(file, limit);
  proto::WriteShardReply reply;
  for (const Tensor& value : values) *reply.add_entry() = writer.write(value);
  file.sync();
  file.close();
  reply.set_size_bytes(writer.bytes());
  return reply;
}

void remove_what_was_written(FileSystem& files, const std::string& path) {
  try {
    remove_if_exists(files, path);
  } catch (const std::exception& error) {
    log_warning("{} was not completed, and cannot be removed: {}", path, error.what());
  }
}

void check_is_short(const std::string& path, uint64_t bytes) {
  if (bytes <= kMostLookedAt) return;
  throw ResourceExhaustedError(
      fmt::format("{} has more than {} bytes, the most of a file that is looked at", path, kMostLookedAt));
}

}  // namespace

proto::WriteShardReply write_shard_file(FileSystem& files, const ShardFile& shard, const std::vector<Tensor>& values) {
  if (!is_temporary_data(shard.path))
    throw InvalidArgumentError(fmt::format("{} is not the temporary name of a data file of a checkpoint", shard.path));
  if (shard.before_piece) shard.before_piece();
  const std::function<void()> ask = shard.before_piece ? shard.before_piece : [] {};
  auto file = std::make_unique<AskingFile>(files.create_large(shard.path, {.if_exists = FileSystem::IfExists::kFail,
                                                                           .expected_bytes = size_of_file(values)}),
                                           ask);
  try {
    proto::WriteShardReply reply = write_values(*file, shard, values);
    files.sync_directory(directory_name(shard.path));
    ask();
    return reply;
  } catch (...) {
    file.reset();
    remove_what_was_written(files, shard.path);
    throw;
  }
}

proto::LookAtFileReply look_at_file(FileSystem& files, const std::string& path,
                                    const std::function<void()>& before_piece) {
  constexpr size_t kPiece = 1 << 20;
  proto::LookAtFileReply reply;
  const auto seen = [&](auto&& look) {
    try {
      look();
      return true;
    } catch (const Error& error) {
      reply.Clear();
      reply.set_why(error.what());
      return false;
    }
  };
  const auto open = [&] {
    constexpr size_t kLongestPath = 4096;  // PATH_MAX; the error would repeat it
    if (path.size() > kLongestPath) throw InvalidArgumentError(fmt::format("a path of {} bytes", path.size()));
    return files.open(path);
  };
  std::unique_ptr<ReadableFile> file;
  if (!seen([&] { file = open(); })) return reply;
  std::string piece(kPiece, '\0');
  uint64_t offset = 0;
  uint32_t crc = 0;
  for (size_t count = kPiece; count == kPiece; offset += count) {
    if (before_piece) before_piece();
    const auto read = [&] {
      check_is_short(path, offset);
      count = file->read(offset, piece.data(), piece.size());
    };
    if (!seen(read)) return reply;
    crc = extend_crc32c(crc, std::string_view(piece).substr(0, count));
  }
  reply.set_is_there(true);
  reply.set_size_bytes(offset);
  reply.set_crc32c(crc);
  return reply;
}

std::string why_read_only(FileSystem& files, const std::string& probe) {
  if (!base_name(probe).starts_with(kDirectoryProbe)) return fmt::format("{} is not the name of a probe", probe);
  const std::string path = temporary_path(probe);
  std::unique_ptr<WritableFile> file;
  try {
    file = files.create(path, FileSystem::IfExists::kFail);
    file->close();
    files.remove(path);
    return "";
  } catch (const Error& error) {
    if (file != nullptr) remove_what_was_written(files, path);
    return error.what();
  }
}

}  // namespace longhaul
