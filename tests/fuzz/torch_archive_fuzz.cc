// A byte of flags, then an archive of PyTorch's. With flag 1 it is the archive's data.pkl alone, which is put into an
// archive with eleven storages, so that no checksum hides it. Whatever it is, its entries are listed and read, or
// refused; and those that were read can be written, and read again as the same.
#include <string>
#include <vector>

#include "longhaul/checkpoint/torch_archive/torch_archive_fixture.h"
#include "longhaul/checkpoint/torch_archive/torch_archive_writer.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"

namespace longhaul::fuzz {
namespace {

constexpr size_t kStorages = 11;
constexpr size_t kStorageBytes = 256;

using Values = std::vector<std::pair<std::string, Tensor>>;

// Those of dtypes that we have.
Values read(const std::string& file) {
  const TorchArchive archive = testing::open_torch(file);
  std::vector<const TorchEntry*> wanted;
  for (const TorchEntry& entry : archive.entries()) {
    if (entry.dtype != kInvalid) wanted.push_back(&entry);
  }
  const std::vector<Tensor> tensors = archive.read(wanted);
  Values values;
  for (size_t i = 0; i < wanted.size(); ++i) values.emplace_back(wanted[i]->name, tensors[i]);
  return values;
}

std::string written(const Values& values, TorchArchiveKind kind) {
  std::vector<TorchTensor> tensors;
  for (const auto& [name, tensor] : values) tensors.push_back({name, tensor.dtype(), tensor.shape()});
  testing::StringFile file;
  TorchArchiveWriter writer(file, "x", kind, tensors);
  for (const auto& [name, tensor] : values) writer.add(tensor);
  writer.finish();
  return file.bytes();
}

bool same(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].first != b[i].first || !identical(a[i].second, b[i].second)) return false;
  }
  return true;
}

void read_twice(const std::string& file) {
  Values values = read(file);
  std::erase_if(values, [](const auto& value) { return value.second.dtype() == kString; });
  if (!same(read(written(values, TorchArchiveKind::kDict)), values)) __builtin_trap();
  if (read(written(values, TorchArchiveKind::kModule)).size() != values.size()) __builtin_trap();
}

}  // namespace
}  // namespace longhaul::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const bool is_pickle = input.byte() & 1;
  const std::string rest = input.rest();
  const std::vector<std::string> storages(fuzz::kStorages, std::string(fuzz::kStorageBytes, '\1'));
  try {
    fuzz::read_twice(is_pickle ? testing::torch_file(rest, storages) : rest);
  } catch (const Error&) {
  }
  return 0;
}
