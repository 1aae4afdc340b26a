#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/tensor_bundle.pb.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace longhaul {

// The entries of an index that is being written. Checks that each tensor occurs once and that slices fit together.
// Errors are InvalidArgumentErrors, which name the prefix. One thread at a time may call.
class WrittenEntries {
 public:
  explicit WrittenEntries(std::string prefix) : prefix_(std::move(prefix)) {}

  // Throws if the name is empty or taken.
  void check_new(const std::string& name) const;

  // A tensor whose bytes are in that data file.
  void add(const std::string& key, proto::BundleEntryProto entry, size_t shard);

  // Lists the slice in the entry of the full tensor. Throws if `shape`, the tensor's, is not the slice's, or the slice
  // does not go with those before it.
  void add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice, DType dtype,
                 const Shape& shape);

  // The index, with its header.
  void write(WritableFile& file, size_t num_shards) const;

 private:
  proto::BundleEntryProto& whole_entry(const std::string& name, const Shape& full_shape, DType dtype);

  const std::string prefix_;
  std::map<std::string, proto::BundleEntryProto> entries_;  // by key, as in the index
  std::map<std::string, std::vector<TensorSlice>> slices_;  // by name, with all their lengths
};

}  // namespace longhaul
