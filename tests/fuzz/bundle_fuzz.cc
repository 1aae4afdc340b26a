// A checkpoint of one index and one data file. A byte of flags, then
//   0: the index with its length, the data                        (flag 2: repair the index's checksums)
//   1: header and entries with their lengths, an empty one, data  (flag 2: repair the tensors' checksums)
#include <map>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/proto/tensor_bundle.pb.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/repair.h"

namespace longhaul::fuzz {
namespace {

class StringFile : public WritableFile {
 public:
  void append(std::string_view data) override { contents_ += data; }
  void flush() override {}
  void sync() override {}
  void close() override {}
  const std::string& contents() const { return contents_; }

 private:
  std::string contents_;
};

using Entries = std::map<std::string, std::string>;

Entries take_entries(Input& input) {
  Entries entries;
  entries[""] = input.counted_bytes();
  for (std::string key = input.counted_bytes(); !key.empty(); key = input.counted_bytes()) {
    entries[key] = input.counted_bytes();
  }
  return entries;
}

void repair_tensor(std::string& entry, const std::string& data) {
  proto::BundleEntryProto message;
  if (!message.ParseFromString(entry) || message.offset() < 0 || message.size() < 0) return;
  const auto offset = static_cast<uint64_t>(message.offset()), size = static_cast<uint64_t>(message.size());
  if (offset > data.size() || size > data.size() - offset) return;
  message.set_crc32c(mask_crc32c(crc32c(std::string_view(data).substr(offset, size))));
  entry = message.SerializeAsString();
}

std::string table_of(const Entries& entries) {
  StringFile file;
  TableWriter writer(file);
  for (const auto& [key, value] : entries) writer.add(key, value);
  writer.finish();
  return file.contents();
}

testing::MemoryFileSystem take_files(Input& input) {
  const uint8_t flags = input.byte();
  Entries entries;
  std::string index, data;
  if (flags & 1) {
    entries = take_entries(input);
    data = input.rest();
    if (flags & 2) {
      for (auto& [key, value] : entries) repair_tensor(value, data);
    }
    index = table_of(entries);
  } else {
    index = input.counted_bytes();
    data = input.rest();
    if (flags & 2) repair_table(index);
  }
  testing::MemoryFileSystem files;
  files.put("x.index", index);
  files.put("x.data-00000-of-00001", data);
  return files;
}

template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void read_everything(FileSystem& files) {
  const BundleReader reader(files, "x");
  reader.verify();
  reader.total_bytes();
  std::vector<BundleReader::Wanted> all;
  for (const std::string& name : reader.keys()) all.push_back({.name = name});
  attempt([&] { reader.read_many(all); });
  for (const std::string& name : reader.keys()) {
    const BundleReader::Entry& entry = reader.entry(name);
    attempt([&] { reader.read(name); });
    attempt([&] {
      TensorSlice slice = TensorSlice::full(entry.shape.rank()).within(entry.shape);
      if (!slice.extents.empty()) slice.extents[0].length /= 2;
      reader.read_slice(name, slice);
    });
  }
}

}  // namespace
}  // namespace longhaul::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  auto files = fuzz::take_files(input);
  fuzz::attempt([&] { fuzz::read_everything(files); });
  return 0;
}
