// The zip files of PyTorch's archives: what is written, and what damaged and foreign ones are told to be.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "longhaul/checkpoint/torch_archive/torch_archive_fixture.h"
#include "longhaul/checkpoint/torch_archive/zip_reader.h"
#include "longhaul/checkpoint/torch_archive/zip_writer.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/needs_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using testing::StringFile;

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  StringFile file;
  ZipWriter zip(file);
  for (const auto& [name, bytes] : entries) zip.add(name, bytes);
  zip.finish();
  return file.bytes();
}

class Opened {
 public:
  explicit Opened(const std::string& bytes) {
    files_.put("x", bytes);
    file_ = files_.open("x");
    zip_ = std::make_unique<ZipReader>(*file_, "x");
  }
  std::string text(const std::string& name) const { return zip_->read_text(*zip_->find(name), 1000); }
  const ZipReader& zip() const { return *zip_; }

 private:
  testing::MemoryFileSystem files_;
  std::unique_ptr<ReadableFile> file_;
  std::unique_ptr<ZipReader> zip_;
};

TEST(Zip, EntriesComeBackAndBeginAtMultiplesOf64) {
  const std::string bytes = zip_of({{"a", "first"}, {"folder/b", ""}, {"c", std::string(100, 'c')}});
  const Opened opened(bytes);
  ASSERT_EQ(opened.zip().entries().size(), 3u);
  EXPECT_EQ(opened.text("a"), "first");
  EXPECT_EQ(opened.text("folder/b"), "");
  EXPECT_EQ(opened.text("c"), std::string(100, 'c'));
  EXPECT_EQ(opened.zip().find("d"), nullptr);
  EXPECT_EQ(bytes.find("first") % 64, 0u);
  EXPECT_EQ(bytes.find("ccc") % 64, 0u);
}

TEST(Zip, AnEmptyOneHasNoEntries) {
  EXPECT_TRUE(Opened(zip_of({})).zip().entries().empty());
}

TEST(Zip, ACommentAtTheEndIsPassedOver) {
  std::string bytes = zip_of({{"a", "first"}});
  bytes[bytes.size() - 2] = 3;
  EXPECT_EQ(Opened(bytes + "PK!").text("a"), "first");
}

TEST(Zip, NoPrefixIsReadAsAFile) {
  const std::string bytes = zip_of({{"a", "first"}, {"b", "second"}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(Opened(bytes.substr(0, size)), DataLossError) << size;
  }
}

TEST(Zip, AFlippedByteOfTheDataIsFoundByItsChecksum) {
  std::string bytes = zip_of({{"a", "first"}});
  for (size_t i = bytes.find("first"), end = i + 5; i < end; ++i) {
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    EXPECT_THAT(error_of<DataLossError>([&] { Opened(bytes).text("a"); }), HasSubstr("x: a: crc 0x"));
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
  }
}

TEST(Zip, AnEntryThatIsThereTwiceIsRefused) {
  EXPECT_THAT(error_of<DataLossError>([] { Opened(zip_of({{"a", "1"}, {"a", "2"}})); }), HasSubstr("a is there twice"));
}

TEST(Zip, ASizeBeyondTheFileIsRefusedBeforeMemoryIsTaken) {
  std::string bytes = zip_of({{"a", "first"}});
  const size_t directory = bytes.find("PK\x01\x02");
  for (const size_t field : {20, 24}) bytes.replace(directory + field, 4, "\xf0\xff\xff\x7f");
  EXPECT_THAT(error_of<DataLossError>([&] { Opened{bytes}; }), HasSubstr("does not fit in the file"));
}

TEST(Zip, ACompressedEntryIsRefusedWhenItIsRead) {
  std::string bytes = zip_of({{"a", "first"}, {"b", "second"}});
  bytes[bytes.find("PK\x01\x02") + 10] = 8;  // deflated
  const Opened opened(bytes);
  EXPECT_EQ(opened.text("b"), "second");
  EXPECT_THAT(error_of<UnimplementedError>([&] { opened.text("a"); }), HasSubstr("a is compressed or encrypted"));
}

// Bytes that are only counted, and what is short is kept.
class SparseFile : public WritableFile, public ReadableFile {
 public:
  void append(std::string_view data) override {
    if (data.size() < 1000) pieces_[size_] = data;
    size_ += data.size();
  }
  void append_borrowed(std::string_view data, std::shared_ptr<const void>) override { append(data); }
  void flush() override {}
  void sync() override {}
  void close() override {}
  uint64_t size() const override { return size_; }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    std::fill(out, out + count, '\0');
    for (const auto& [begin, piece] : pieces_) {
      for (size_t i = 0; i < piece.size(); ++i) {
        if (begin + i >= offset && begin + i < offset + count) out[begin + i - offset] = piece[i];
      }
    }
    return static_cast<size_t>(std::min<uint64_t>(count, size_ - offset));
  }

 private:
  std::map<uint64_t, std::string> pieces_;
  uint64_t size_ = 0;
};

TEST(Zip, EntriesOfMoreThanFourGibibytesHaveTheirSizesIn64Bits) {
  LONGHAUL_NEEDS("long_tests", std::getenv("LONGHAUL_LONG_TESTS") != nullptr, "LONGHAUL_LONG_TESTS is not set");
  const std::string large(size_t{4'400'000'000}, '\0');
  SparseFile file;
  ZipWriter writer(file);
  writer.add("large", large);
  writer.add("small", "behind it");
  writer.finish();
  const ZipReader zip(file, "x");
  EXPECT_EQ(zip.find("large")->size, large.size());
  EXPECT_EQ(zip.read_text(*zip.find("small"), 100), "behind it");
}

}  // namespace
}  // namespace longhaul
