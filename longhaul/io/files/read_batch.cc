#include <algorithm>

#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;  // still in the processor's cache when it is used

// Empty: the file ends here.
ReadPart read_part(const ReadableFile& file, const ReadRequest& request, size_t begin, char* out, size_t count) {
  ReadPart part{.begin = begin};
  try {
    part.bytes = {out, file.read(request.offset + begin, out, count)};
  } catch (const Error&) {
    part.error = std::current_exception();
  }
  return part;
}

}  // namespace

void ReadableFile::read_batch(std::span<const ReadRequest> requests, const UsePart& use) const {
  std::string shown;
  for (size_t i = 0; i < requests.size(); ++i) {
    const ReadRequest& request = requests[i];
    if (request.out == nullptr) shown.resize(std::max(shown.size(), std::min(request.count, kChunkBytes)));
    for (size_t done = 0; done < request.count;) {
      const size_t count = std::min(request.count - done, kChunkBytes);
      ReadPart part = read_part(*this, request, done, request.out ? request.out + done : shown.data(), count);
      part.request = i;
      if (part.error || !part.bytes.empty()) use(part);
      if (part.error || part.bytes.size() < count) break;
      done += count;
    }
  }
}

}  // namespace longhaul
