#include "longhaul/checkpoint/genuine_test.h"

#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/testing/memory_file_system.h"

namespace longhaul::testing {
namespace {

std::string with_trailer(std::string block, char type) {
  block.push_back(type);
  wire::append(block, mask_crc32c(crc32c(block)));
  return block;
}

}  // namespace

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

GenuineBundle counter_bundle() {
  return {from_hex(
              "00000608011a02080100070b636f756e74657208011200280435a67b113a0000000001000000005fa01073000000000100000000"
              "c0f2a1b000010264002600000000010000000022b161032b08380e00000000000000000000000000000000000000000000000000"
              "000000000000000000000057fb808b247547db"),
          from_hex("00000000")};
}

GenuineBundle snappy_bundle() {
  return {from_hex(
              "646c00000608011a02080100010b61080112002804350638271f01010d32010f0420040d110c00010d6205112c0828043510fd78"
              "4f00010d6305111c0c280435efd682c315333c10280435efd682c300000000010000000103da3e1d000000000100000000c0f2a1"
              "b000010264005700000000010000000075f79c875c08690e00000000000000000000000000000000000000000000000000000000"
              "000000000000000057fb808b247547db"),
          from_hex("0000003f0000003f000000400000404000004040")};
}

GenuineBundle empty_bundle() {
  return {from_hex(
              "00000608011a020801000000000100000000629457f9000000000100000000c0f2a1b00000020011000000000100000000ccbf8b"
              "5d1608230d00000000000000000000000000000000000000000000000000000000000000000000000057fb808b247547db"),
          ""};
}

std::string table_with_block(const std::string& contents, char type) {
  std::string file = with_trailer(contents, type);
  std::string handle;
  append_varint(handle, 0);
  append_varint(handle, contents.size());
  std::string index("\0\1", 2);
  append_varint(index, handle.size());
  index += "z" + handle;
  wire::append(index, uint32_t{0});
  wire::append(index, uint32_t{1});
  std::string footer(2, '\0');
  append_varint(footer, file.size());
  append_varint(footer, index.size());
  footer.resize(40);
  wire::append(footer, uint64_t{0xdb4775248b80fb57});
  return file + with_trailer(index, 0) + footer;
}

std::unique_ptr<FileSystem> files_in_memory(const GenuineBundle& bundle) {
  auto files = std::make_unique<MemoryFileSystem>();
  files->put(index_path("x"), bundle.index);
  files->put(data_path("x", 0, 1), bundle.data);
  return files;
}

std::unique_ptr<ReadableFile> file_in_memory(std::string_view contents) {
  MemoryFileSystem files;
  files.put("file", contents);
  return files.open("file");
}

void write_bundle(const GenuineBundle& bundle, const std::string& prefix) {
  write_file_atomically(FileSystem::real(), data_path(prefix, 0, 1), bundle.data);
  write_file_atomically(FileSystem::real(), index_path(prefix), bundle.index);
}

}  // namespace longhaul::testing
