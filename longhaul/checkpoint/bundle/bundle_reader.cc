#include "longhaul/checkpoint/bundle/bundle_reader.h"

#include "longhaul/checkpoint/bundle/tensor_assembly.h"

namespace longhaul {
namespace {

bool is_slice(const std::string& key) {
  return key[0] == '\0';
}

// Whether such an error is the checkpoint's fault, and not that of the moment.
bool tells_of_damage(Code code) {
  return code != Code::kResourceExhausted && code != Code::kUnavailable && code != Code::kPermissionDenied &&
         code != Code::kCancelled;
}

}  // namespace

BundleReader::BundleReader(FileSystem& files, const std::string& prefix)
    : index_(files, prefix), pieces_(files, index_) {}

std::vector<std::string> BundleReader::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, piece] : index_.pieces()) {
    if (!is_slice(key)) names.push_back(key);
  }
  return names;
}

const BundleReader::Entry* BundleReader::find(std::string_view name) const {
  const auto it = index_.pieces().find(name);
  return it == index_.pieces().end() || is_slice(it->first) ? nullptr : &it->second.entry;
}

const BundleReader::Entry& BundleReader::entry(std::string_view name) const {
  return index_.piece(name).entry;
}

uint64_t BundleReader::total_bytes() const {
  uint64_t total = 0;
  for (const auto& [key, piece] : index_.pieces()) {
    if (piece.entry.slices.empty()) total += piece.entry.bytes;
  }
  return total;
}

Tensor BundleReader::read(std::string_view name) const {
  return read_one(name, std::nullopt);
}

Tensor BundleReader::read_slice(std::string_view name, const TensorSlice& slice) const {
  return read_one(name, slice);
}

Tensor BundleReader::read_one(std::string_view name, const std::optional<TensorSlice>& slice) const {
  const MakeTensor plain;
  TensorAssembly assembly(index_, pieces_, plain);
  Tensor tensor = assembly.add(name, slice);
  assembly.finish();
  return tensor;
}

std::vector<Tensor> BundleReader::read_many(std::span<const Wanted> wanted, const MakeTensor& make) const {
  TensorAssembly assembly(index_, pieces_, make);
  std::vector<Tensor> tensors;
  for (const Wanted& one : wanted) tensors.push_back(assembly.add(one.name, one.slice));
  assembly.finish();
  return tensors;
}

void BundleReader::verify_slices(std::string_view name, const Entry& whole) const {
  PieceReader::check_shape(whole, 0, index_.where(name));
  slice_parts(index_, pieces_, name, whole, TensorSlice::full(whole.shape.rank()));
}

std::vector<std::string> BundleReader::verify(const std::function<void(uint64_t bytes)>& on_bytes) const {
  std::vector<std::string> damages;
  std::vector<WantedPiece> wanted;
  for (const auto& [key, piece] : index_.pieces()) {
    if (piece.entry.slices.empty()) {
      wanted.push_back({.piece = &piece, .where = index_.where(key, piece)});
      continue;
    }
    try {
      verify_slices(key, piece.entry);
    } catch (const Error& error) {
      if (!tells_of_damage(error.code())) throw;
      damages.emplace_back(error.what());
    }
  }
  pieces_.read(wanted, on_bytes);
  for (const WantedPiece& one : wanted) {
    if (!one.error) continue;
    if (!tells_of_damage(code_of(one.error))) std::rethrow_exception(one.error);
    damages.push_back(message_of(one.error));
  }
  return damages;
}

}  // namespace longhaul
