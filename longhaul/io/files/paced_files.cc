#include "longhaul/io/files/paced_files.h"

#include <algorithm>
#include <utility>

namespace longhaul {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

}  // namespace

class PacedFiles::File : public ReadableFile {
 public:
  File(PacedFiles& files, std::unique_ptr<ReadableFile> file) : files_(files), file_(std::move(file)) {}

  uint64_t size() const override { return file_->size(); }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    files_.take(count);
    return file_->read(offset, out, count);
  }
  void read_batch(std::span<const ReadRequest> requests, const UsePart& use) const override {
    for (size_t i = 0; i < requests.size(); ++i) read_request(requests[i], i, use);
  }

 private:
  void read_request(const ReadRequest& request, size_t number, const UsePart& use) const {
    for (size_t done = 0; done < request.count; done += kPieceBytes) {
      const size_t count = std::min(request.count - done, kPieceBytes);
      const ReadRequest piece{request.offset + done, request.out != nullptr ? request.out + done : nullptr, count};
      files_.take(count);
      file_->read_batch({&piece, 1}, [&](const ReadPart& part) {
        use({.request = number, .begin = done + part.begin, .bytes = part.bytes, .error = part.error});
      });
    }
  }

  PacedFiles& files_;
  const std::unique_ptr<ReadableFile> file_;
};

PacedFiles::PacedFiles(FileSystem& inner, double max_bytes_per_second, std::function<void()> before_piece, Clock& clock,
                       Pause pause)
    : BucketFiles(inner, {}),
      rate_(max_bytes_per_second, clock, std::move(pause)),
      before_piece_(std::move(before_piece)) {}

std::unique_ptr<ReadableFile> PacedFiles::open(const std::string& path) {
  return std::make_unique<File>(*this, BucketFiles::open(path));
}

void PacedFiles::take(size_t bytes) {
  before_piece_();
  rate_.take(bytes);
}

}  // namespace longhaul
