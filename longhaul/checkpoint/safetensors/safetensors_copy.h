#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/tensor/dtype.h"

// Shared by the export and import of safetensors.
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

}  // namespace longhaul
