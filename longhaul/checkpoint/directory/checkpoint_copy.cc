#include "longhaul/checkpoint/directory/checkpoint_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/writes_under_way.h"
#include "longhaul/io/files/paced_files.h"

namespace longhaul {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

// A file of the checkpoint, without the prefix in its name.
struct OpenPart {
  std::string ending;
  std::unique_ptr<ReadableFile> file;
  uint64_t bytes = 0;
};

struct Source {
  std::string index;
  std::vector<OpenPart> parts;  // without the index
  uint64_t bytes = 0;           // of all
};

Source open_source(const std::string& from, const CheckpointCopyOptions& options) {
  FileSystem& files = *options.from_files;
  const auto prefix = committed_prefix(files, from);
  if (!prefix) throw NotFoundError("there is no checkpoint to copy: " + from);
  Source source{.index = read_file(files, index_path(*prefix))};
  source.bytes = source.index.size();
  std::vector<std::string> paths = data_files_of(files, *prefix);
  const std::string meta = meta_graph_filename(*prefix, options.meta_suffix);
  if (files.exists(meta)) paths.push_back(meta);
  for (const std::string& path : paths) {
    OpenPart part{.ending = path.substr(prefix->size()), .file = files.open(path)};
    part.bytes = part.file->size();
    source.bytes += part.bytes;
    source.parts.push_back(std::move(part));
  }
  return source;
}

void call(const std::function<void()>& function) {
  if (function) function();
}

class Copy {
 public:
  Copy(const Source& source, const std::string& to, const CheckpointCopyOptions& options)
      : source_(source),
        to_(to),
        directory_(directory_name(to)),
        place_(options.in_place ? to : join_path(incoming(), base_name(to))),
        options_(options),
        files_(*options.to_files),
        rate_(options.max_bytes_per_second, *options.clock, options.pause) {}

  bool is_there() const {
    return checkpoint_exists(files_, to_) && files_.exists(index_path(to_)) &&
           read_file(files_, index_path(to_)) == source_.index;
  }

  void make() {
    const WriteUnderWay under_way(to_);
    if (options_.before_first_byte) options_.before_first_byte(source_.bytes);
    call(options_.before_change);
    files_.make_directories(incoming());
    try {
      if (options_.in_place) {
        announce();
        remove_at_destination();
        files_.sync_directory(directory_);
      }
      write();
      verify();
      if (!options_.in_place) commit();
      if (options_.in_place) clear_incoming(files_, directory_);
    } catch (...) {
      clean_up();
      throw;
    }
  }

 private:
  std::string incoming() const { return join_path(directory_, kIncoming); }

  // An index there says that files of its name may be in the directory which are not committed.
  void announce() {
    const auto index = files_.create(index_path(join_path(incoming(), base_name(to_))));
    index->append(source_.index);
    index->sync();
    index->close();
    files_.sync_directory(incoming());
  }

  void remove_at_destination() {
    call(options_.before_change);
    remove_checkpoint(files_, to_, options_.meta_suffix);
  }

  void write() {
    for (const OpenPart& part : source_.parts) write_part(part);
    const auto index = files_.create(index_path(place_));
    call(options_.before_piece);
    index->append(source_.index);
    index->sync();
    index->close();
    files_.sync_directory(directory_name(place_));
  }

  void write_part(const OpenPart& part) {
    const auto file = files_.create_large(place_ + part.ending, {.expected_bytes = part.bytes});
    std::string piece(std::min<uint64_t>(kPieceBytes, part.bytes), '\0');
    for (uint64_t offset = 0; offset < part.bytes; offset += piece.size()) {
      call(options_.before_piece);
      const size_t count = std::min<uint64_t>(piece.size(), part.bytes - offset);
      read_piece(part, offset, {.offset = 0, .out = piece.data(), .count = count});
      rate_.take(count);
      file->append(std::string_view(piece).substr(0, count));
    }
    file->sync();
    file->close();
  }

  void read_piece(const OpenPart& part, uint64_t offset, ReadRequest request) {
    request.offset = offset;
    size_t done = 0;
    part.file->read_batch({&request, 1}, [&](const ReadPart& read) {
      if (read.error) std::rethrow_exception(read.error);
      done += read.bytes.size();
    });
    if (done != request.count)
      throw DataLossError(fmt::format("{}{} was truncated while it was copied", to_, part.ending));
  }

  void verify() {
    PacedFiles paced(
        files_, options_.max_bytes_per_second, [this] { call(options_.before_piece); }, *options_.clock,
        options_.pause);
    const std::vector<std::string> damages = BundleReader(paced, place_).verify();
    if (!damages.empty()) throw DataLossError("the copy cannot be read back: " + damages.front());
  }

  void commit() {
    if (committed_prefix(files_, to_)) remove_at_destination();
    files_.sync_directory(directory_);  // an old index must not come back to the new data
    for (const OpenPart& part : source_.parts) rename(part.ending);
    files_.sync_directory(directory_);
    rename(index_path(""));
    files_.sync_directory(directory_);
  }

  void rename(const std::string& ending) {
    call(options_.before_change);
    files_.rename(place_ + ending, to_ + ending);
  }

  // The error that ended the copy is on its way already.
  void clean_up() {
    try {
      call(options_.before_change);
      if (options_.in_place || !committed_prefix(files_, to_)) remove_checkpoint(files_, to_, options_.meta_suffix);
      files_.sync_directory(directory_);
      clear_incoming(files_, directory_);
    } catch (const std::exception& error) {
      log_debug("the remains of {} are left for now: {}", to_, error.what());
    }
  }

  const Source& source_;
  const std::string to_, directory_, place_;
  const CheckpointCopyOptions& options_;
  FileSystem& files_;
  RateLimit rate_;
};

}  // namespace

bool copy_checkpoint(const std::string& from, const std::string& to, const CheckpointCopyOptions& options) {
  const Source source = open_source(from, options);
  Copy copy(source, to, options);
  if (copy.is_there()) return false;
  copy.make();
  return true;
}

std::vector<std::string> clear_incoming(FileSystem& files, const std::string& directory) {
  const std::string incoming = join_path(directory, kIncoming);
  std::vector<std::string> kept;
  if (!files.is_directory(incoming)) return kept;
  for (const std::string& name : files.list(incoming)) {
    const std::string path = join_path(incoming, name);
    if (files.is_directory(path)) {
      kept.push_back(path);
    } else {
      remove_if_exists(files, path);
    }
  }
  return kept;
}

}  // namespace longhaul
