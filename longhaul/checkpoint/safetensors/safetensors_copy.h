#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

// Shared by the export and import of safetensors and of state dicts.
namespace longhaul {

// A tensor that is copied.
struct SafetensorsCopy {
  std::string from;
  std::string to;
  DType dtype = kInvalid;
  Shape shape;
  uint64_t begin = 0, end = 0;  // in the data section

  uint64_t bytes() const { return end - begin; }
};

// Chooses the tensors that are copied, and their names.
class SafetensorsChoice {
 public:
  // `source` begins the messages. Both must outlive this object.
  SafetensorsChoice(const SafetensorsOptions& options, const std::string& source)
      : options_(options), source_(source) {}

  // The new name. nullopt: it is left out. `is_known`: both sides have the dtype; `dtype` is its name, for messages.
  // InvalidArgumentError, UnimplementedError: as in the export and import functions.
  std::optional<std::string> name_for(const std::string& name, bool is_known, const std::string& dtype);

  // The choice made.
  SafetensorsReport report(const std::map<std::string, std::string>& metadata) const;

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& new_name, const char* why) const;

  const SafetensorsOptions& options_;
  const std::string& source_;
  std::set<std::string> names_;
  std::vector<std::string> skipped_;
};

// Calls `copy` with consecutive parts of `tensors`, each of at most 64 MiB or a single tensor.
void for_each_batch(std::span<const SafetensorsCopy> tensors,
                    const std::function<void(std::span<const SafetensorsCopy>)>& copy);

// The bytes of a checkpoint's tensor, as dtype and shape have them. DataLossError: its entry says something else.
uint64_t copied_bytes(const BundleReader& checkpoint, const std::string& name, const BundleEntry& entry);

// Calls `use` with the values of the tensors, in their order, a batch at a time.
void read_copies(const BundleReader& checkpoint, std::span<const SafetensorsCopy> tensors,
                 const std::function<void(const Tensor&)>& use);

// Sorts tensors of which `end` is the number of bytes as the format's own writer does, and gives them their places.
// `source` begins the messages.
void lay_out(std::vector<SafetensorsCopy>& tensors, const std::string& source);

SafetensorsHeader header_of(const std::vector<SafetensorsCopy>& tensors,
                            const std::map<std::string, std::string>& metadata);

// A safetensors file that is read. Any thread may call.
class SafetensorsSource {
 public:
  // Reads the header. Errors as in read_safetensors_header().
  SafetensorsSource(FileSystem& files, const std::string& path);

  const SafetensorsHeader& header() const { return header_; }

  // The tensors that `choice` chooses, in the file's order.
  std::vector<SafetensorsCopy> choose(SafetensorsChoice& choice) const;

  // DataLossError: the file was truncated meanwhile, or a BOOL is neither 0 nor 1.
  std::vector<Tensor> read(std::span<const SafetensorsCopy> wanted) const;

 private:
  const std::string path_;
  const std::unique_ptr<const ReadableFile> file_;
  const SafetensorsHeader header_;
};

}  // namespace longhaul
