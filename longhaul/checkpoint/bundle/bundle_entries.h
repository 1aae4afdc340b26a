#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/checkpoint/table/table.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/tensor_bundle.pb.h"

namespace longhaul {

// The entries of a checkpoint's index, in the order of their keys. The constructor reads the header.
//
//   BundleEntries entries(files.open(path), path);
//   use(entries.header());
//   while (entries.next()) use(entries.key(), entries.entry());
//
// DataLossError: the index is damaged or makes implausible claims. These are found before memory is allocated for them:
// a shape or slice of more than 254 dimensions (TensorFlow's limit); more slices of tensors than are stored, where the
// slices precede (up to a thousand may be missing: their tensors are damaged, the others intact); entries that take
// more memory than 64 MiB plus 64 bytes for each byte of the file. One thread at a time may call.
class BundleEntries {
 public:
  static constexpr uint64_t kMostDims = 254;
  static constexpr uint64_t kMostMissingSlices = 1000;
  static constexpr uint64_t kBaseBytes = uint64_t{64} << 20;
  static constexpr uint64_t kBytesPerByte = 64;

  BundleEntries(std::unique_ptr<const ReadableFile> file, const std::string& path);
  BundleEntries(const BundleEntries&) = delete;
  BundleEntries& operator=(const BundleEntries&) = delete;

  const proto::BundleHeaderProto& header() const { return header_; }

  // Moves to the next entry; the first call, to the first one. False after the last.
  bool next();
  const std::string& key() const { return cursor_.key(); }
  const proto::BundleEntryProto& entry() const { return entry_; }

 private:
  void check_dims(std::string_view bytes);
  void check_slices(std::string_view bytes);
  void charge(std::string_view bytes);
  [[noreturn]] void refuse(const std::string& why) const;

  const std::string path_;
  const Table table_;
  Table::Cursor cursor_;
  proto::BundleHeaderProto header_;
  proto::BundleEntryProto entry_;
  uint64_t taken_bytes_ = 0;     // by the entries so far
  uint64_t stored_slices_ = 0;   // so far
  uint64_t claimed_slices_ = 0;  // of the tensors so far
};

// A name from an index, for messages: long ones are cut.
std::string shown_name(std::string_view name);

}  // namespace longhaul
