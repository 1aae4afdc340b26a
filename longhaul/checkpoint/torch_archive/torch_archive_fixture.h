#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/torch_archive/torch_archive.h"
#include "longhaul/checkpoint/torch_archive/zip_writer.h"
#include "longhaul/testing/memory_file_system.h"

namespace longhaul::testing {

// A file in memory.
class StringFile : public WritableFile {
 public:
  void append(std::string_view data) override { bytes_ += data; }
  void flush() override {}
  void sync() override {}
  void close() override {}
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// An archive "x" with that pickle, and the storages data/0, data/1, ...
inline std::string torch_file(std::string_view pickle, const std::vector<std::string>& storages = {}) {
  StringFile file;
  ZipWriter zip(file);
  zip.add("x/data.pkl", pickle);
  for (size_t i = 0; i < storages.size(); ++i) zip.add("x/data/" + std::to_string(i), storages[i]);
  zip.finish();
  return file.bytes();
}

inline TorchArchive open_torch(const std::string& bytes) {
  MemoryFileSystem files;
  files.put("x.pt", bytes);
  return TorchArchive("x.pt", files);
}

// All its values by name.
inline std::vector<std::pair<std::string, Tensor>> values_of(const TorchArchive& archive) {
  std::vector<const TorchEntry*> wanted;
  for (const TorchEntry& entry : archive.entries()) wanted.push_back(&entry);
  const std::vector<Tensor> tensors = archive.read(wanted);
  std::vector<std::pair<std::string, Tensor>> values;
  for (size_t i = 0; i < tensors.size(); ++i) values.emplace_back(wanted[i]->name, tensors[i]);
  return values;
}
inline std::vector<std::pair<std::string, Tensor>> torch_values(const std::string& bytes) {
  return values_of(open_torch(bytes));
}

// The opcodes of a tensor in storage data/0, as PyTorch writes them: BININT1 for sizes below 256.
struct PickledTensor {
  std::string storage_class = "FloatStorage";
  int storage_elements = 6;
  int offset = 0;
  std::vector<int> sizes = {2, 3};
  std::vector<int> strides = {3, 1};
};
inline std::string pickled_numbers(const std::vector<int>& numbers) {
  std::string text = "(";
  for (const int number : numbers) text += std::string("K") + static_cast<char>(number);
  return text + "t";
}
inline std::string pickled_text(std::string_view text) {
  return std::string("X") + static_cast<char>(text.size()) + std::string(3, '\0') + std::string(text);
}
inline std::string pickled(const PickledTensor& tensor) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\n" + tensor.storage_class + "\n" +
         pickled_text("0") + pickled_text("cpu") + "K" + static_cast<char>(tensor.storage_elements) + "tQK" +
         static_cast<char>(tensor.offset) + pickled_numbers(tensor.sizes) + pickled_numbers(tensor.strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}
// A dict with one entry "w".
inline std::string pickled_dict_of(std::string_view value) {
  return "\x80\x02}(" + pickled_text("w") + std::string(value) + "u.";
}

}  // namespace longhaul::testing
