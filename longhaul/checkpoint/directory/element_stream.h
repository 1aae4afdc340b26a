#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The elements of a tensor in row-major order, a piece at a time, for tensors that may be larger than memory. One
// thread at a time may call.
//
//   const auto stream = stream_elements(files, reader, "w");
//   for (auto bytes = stream->next(); !bytes.empty(); bytes = stream->next()) use(bytes);
class ElementStream {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  ElementStream() = default;
  virtual ~ElementStream() = default;
  ElementStream(const ElementStream&) = delete;
  ElementStream& operator=(const ElementStream&) = delete;

  // The next kPieceBytes, fewer only at the end, in this machine's byte order, aligned for every dtype; valid until the
  // next call. Empty: that was all, and its checksum is right. DataLossError: it is not, or the file is too short.
  virtual std::string_view next() = 0;
};

// That of a tensor in memory.
class MemoryStream final : public ElementStream {
 public:
  explicit MemoryStream(Tensor tensor) : tensor_(std::move(tensor)) {}
  std::string_view next() override;

 private:
  const Tensor tensor_;
  size_t given_ = 0;
};

// That of a tensor of a checkpoint; one that is stored in slices is read into memory first. The stream must not outlive
// the reader. InvalidArgumentError: it has strings, which BundleReader::read() returns. Other errors as in
// BundleReader.
std::unique_ptr<ElementStream> stream_elements(FileSystem& files, const BundleReader& reader, std::string_view name);

}  // namespace longhaul
