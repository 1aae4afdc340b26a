#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/safetensors/safetensors_copy.h"
#include "longhaul/checkpoint/safetensors/safetensors_json.h"

namespace longhaul {
namespace {

// A bool of another value must not get into a program.
void check_bools(const Tensor& tensor, const std::string& where) {
  if (tensor.dtype() != kBool) return;
  const std::span bytes(static_cast<const unsigned char*>(tensor.data()), tensor.size_bytes());
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte > 1; });
  if (wrong == bytes.end()) return;
  throw DataLossError(fmt::format("{}: element {} is {}, not a valid BOOL", where, wrong - bytes.begin(), *wrong));
}

}  // namespace

SafetensorsSource::SafetensorsSource(FileSystem& files, const std::string& path)
    : path_(path), file_(files.open(path)), header_(read_safetensors_header(*file_, path)) {}

std::vector<SafetensorsCopy> SafetensorsSource::choose(SafetensorsChoice& choice) const {
  std::vector<SafetensorsCopy> tensors;
  for (const SafetensorsEntry& entry : header_.tensors) {
    const DType dtype = safetensors_dtype(entry.dtype).value_or(kInvalid);
    const auto to = choice.name_for(entry.name, dtype != kInvalid, entry.dtype);
    if (to) tensors.push_back({entry.name, *to, dtype, entry.shape, entry.begin, entry.end});
  }
  return tensors;
}

std::vector<Tensor> SafetensorsSource::read(std::span<const SafetensorsCopy> wanted) const {
  std::vector<Tensor> tensors;
  std::vector<ReadRequest> requests;
  for (const SafetensorsCopy& one : wanted) {
    Tensor& tensor = tensors.emplace_back(one.dtype, one.shape);
    char* out = static_cast<char*>(tensor.mutable_data());
    requests.push_back({header_.data_begin + one.begin, out, tensor.size_bytes()});
  }
  std::vector<size_t> missing;
  for (const ReadRequest& request : requests) missing.push_back(request.count);
  file_->read_batch(requests, [&](const ReadPart& part) {
    if (part.error) std::rethrow_exception(part.error);
    missing[part.request] -= part.bytes.size();
  });
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string where = fmt::format("{}: tensor {}", path_, quoted_name(wanted[i].from));
    if (missing[i] != 0) throw DataLossError(fmt::format("{}: the file was truncated while it was read", where));
    check_bools(tensors[i], where);
  }
  return tensors;
}

}  // namespace longhaul
