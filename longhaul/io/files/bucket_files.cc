#include "longhaul/io/files/bucket_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul {
namespace {

// What a file system answers to an operation that it does not have.
bool is_refusal(Code code) {
  return code == Code::kUnimplemented || code == Code::kInvalidArgument || code == Code::kPermissionDenied ||
         code == Code::kUnknown;
}

template <typename Work>
void with_remedy(const char* lacking, const char* option, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (!is_refusal(error.code())) throw;
    throw_error(
        error.code(),
        fmt::format("{}. If this is a mounted bucket, or another file system without {}, set the option {} = false",
                    error.what(), lacking, option));
  }
}

// A file whose sync does nothing, or says what to do where it is refused.
class BucketFile : public WritableFile {
 public:
  BucketFile(std::unique_ptr<WritableFile> file, bool syncs) : file_(std::move(file)), syncs_(syncs) {}

  void append(std::string_view data) override { file_->append(data); }
  void append_borrowed(std::string_view data, std::shared_ptr<const void> owner) override {
    file_->append_borrowed(data, std::move(owner));
  }
  void flush() override { file_->flush(); }
  void sync() override {
    if (!syncs_) return file_->flush();
    with_remedy("fsync", "syncs", [&] { file_->sync(); });
  }
  void close() override { file_->close(); }

 private:
  const std::unique_ptr<WritableFile> file_;
  const bool syncs_;
};

void append_all(const ReadableFile& from, WritableFile& to) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::string piece(std::min<uint64_t>(kPiece, from.size()), '\0');
  uint64_t offset = 0;
  while (const size_t count = from.read(offset, piece.data(), piece.size())) {
    to.append(std::string_view(piece).substr(0, count));
    offset += count;
  }
}

}  // namespace

std::unique_ptr<WritableFile> BucketFiles::create(const std::string& path, IfExists if_exists) {
  return std::make_unique<BucketFile>(inner_.create(path, if_exists), options_.syncs);
}

std::unique_ptr<WritableFile> BucketFiles::create_large(const std::string& path, const LargeFileOptions& options) {
  if (!options_.renames) return create(path, options.if_exists);  // buckets take bytes in their order, from the start
  return std::make_unique<BucketFile>(inner_.create_large(path, options), options_.syncs);
}

void BucketFiles::rename(const std::string& from, const std::string& to) {
  if (options_.renames) return with_remedy("renames", "renames", [&] { inner_.rename(from, to); });
  const auto source = inner_.open(from);
  const auto copy = create(to);
  append_all(*source, *copy);
  copy->sync();
  copy->close();
  inner_.remove(from);
}

void BucketFiles::link(const std::string& from, const std::string& to) {
  if (!options_.renames)
    throw UnimplementedError(fmt::format("link {} {}: this file system has no hard links", from, to));
  inner_.link(from, to);
}

void BucketFiles::sync_directory(const std::string& path) {
  if (options_.syncs) with_remedy("fsync", "syncs", [&] { inner_.sync_directory(path); });
}

}  // namespace longhaul
