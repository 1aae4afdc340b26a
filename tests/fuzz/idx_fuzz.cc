// Two IDX files, of pictures and of labels: a byte (1: both are compressed first), the pictures with their length, the
// labels.
#include <isa-l/igzip_lib.h>

#include "examples/idx_dataset.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"

namespace {

std::string gzip(std::string contents) {
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  std::string out(contents.size() * 2 + 1024, '\0');
  stream.next_in = reinterpret_cast<uint8_t*>(contents.data());
  stream.avail_in = static_cast<uint32_t>(contents.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  if (isal_deflate_stateless(&stream) != COMP_OK) __builtin_trap();
  out.resize(stream.total_out);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const bool compressed = input.byte() & 1;
  const std::string images = input.counted_bytes();
  const std::string labels = input.rest();
  testing::MemoryFileSystem files;
  files.put("d/t-images-idx3-ubyte.gz", compressed ? gzip(images) : images);
  files.put("d/t-labels-idx1-ubyte.gz", compressed ? gzip(labels) : labels);
  try {
    examples::load_images("d", "t", {.rows = 2, .columns = 3, .classes = 4}, files);
  } catch (const Error&) {
  }
  return 0;
}
