#include "longhaul/checkpoint/bundle/tensor_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/slice_cover.h"

namespace longhaul {
namespace {

void copy_common(const Tensor& from, const TensorSlice& from_box, Tensor& to, const TensorSlice& to_box) {
  if (from.dtype() == kString) {
    const auto source = from.flat<std::string>();
    const auto target = to.mutable_flat<std::string>();
    for_each_common_run(from_box, to_box, [&](size_t i, size_t j, size_t count) {
      std::copy_n(source.begin() + static_cast<ptrdiff_t>(i), count, target.begin() + static_cast<ptrdiff_t>(j));
    });
    return;
  }
  const size_t size = dtype_size(from.dtype());
  const char* source = static_cast<const char*>(from.data());
  char* target = static_cast<char*>(to.mutable_data());
  for_each_common_run(from_box, to_box, [&](size_t i, size_t j, size_t count) {
    std::memcpy(target + j * size, source + i * size, count * size);
  });
}

// The stored slice, after checking that it is what the whole says, and that its bytes are there.
SlicePart stored_part(const BundleIndex& index, const PieceReader& pieces, std::string_view name,
                      const BundleEntry& whole, const TensorSlice& stored) {
  const std::string slice_name = fmt::format("{}, slice {}", name, stored.to_string());
  const auto it = index.pieces().find(slice_key(name, stored));
  if (it == index.pieces().end()) throw DataLossError(index.where(slice_name) + ": it is not stored");
  const StoredPiece& piece = it->second;
  const std::string place = index.where(slice_name, piece);
  if (!piece.entry.slices.empty()) throw DataLossError(place + ": it is a slice, but is itself stored in slices");
  SlicePart part{.piece = &piece};
  try {
    part.box = stored.within(whole.shape);
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(fmt::format("{}: {}", place, error.what()));
  }
  if (piece.entry.dtype != whole.dtype || piece.entry.shape != shape_of(part.box)) {
    throw DataLossError(fmt::format("{}: it is stored as {} of shape {}", place, stored_dtype_name(piece.entry.dtype),
                                    piece.entry.shape.to_string()));
  }
  pieces.check(piece, place);
  return part;
}

}  // namespace

std::vector<SlicePart> slice_parts(const BundleIndex& index, const PieceReader& pieces, std::string_view name,
                                   const BundleEntry& whole, const TensorSlice& slice) {
  const TensorSlice wanted = slice.within(whole.shape);
  std::vector<SlicePart> parts;
  SliceCover cover(wanted);
  for (const TensorSlice& stored : whole.slices) {
    SlicePart part = stored_part(index, pieces, name, whole, stored);
    if (cover.add(part.box)) parts.push_back(std::move(part));
  }
  if (cover.overlaps()) throw DataLossError(index.where(name) + ": its slices overlap");
  if (!cover.is_whole()) {
    throw DataLossError(fmt::format("{}: the stored slices hold {} of the {} elements of {}", index.where(name),
                                    cover.found(), shape_of(wanted).num_elements(), wanted.to_string()));
  }
  return parts;
}

Tensor TensorAssembly::make(int dtype, const Shape& shape) const {
  const auto known = static_cast<DType>(dtype);
  return make_ ? make_(known, shape) : Tensor(known, shape);
}

void TensorAssembly::add_piece(const StoredPiece& piece, const std::string& where, const Tensor& out) {
  wanted_.push_back({.piece = &piece, .where = where, .out = out});
}

void TensorAssembly::add_copy(const StoredPiece& piece, const std::string& where, const TensorSlice& box,
                              const Tensor& to, const TensorSlice& to_box) {
  if (temporary_bytes_ > 0 && temporary_bytes_ + piece.entry.bytes > kMostTemporary) finish();
  temporary_bytes_ += piece.entry.bytes;
  copies_.push_back({wanted_.size(), box, to, to_box});
  add_piece(piece, where, Tensor(static_cast<DType>(piece.entry.dtype), piece.entry.shape));
}

Tensor TensorAssembly::add_whole(std::string_view name, const StoredPiece& whole, const TensorSlice& wanted) {
  const std::string where = index_.where(name, whole);
  pieces_.check(whole, where);
  const Tensor tensor = make(whole.entry.dtype, shape_of(wanted));
  if (wanted.covers(whole.entry.shape)) {
    add_piece(whole, where, tensor);
  } else {
    const TensorSlice all = TensorSlice::full(whole.entry.shape.rank()).within(whole.entry.shape);
    add_copy(whole, where, all, tensor, wanted);
  }
  return tensor;
}

Tensor TensorAssembly::add_assembled(std::string_view name, const BundleEntry& whole, const TensorSlice& wanted) {
  const std::vector<SlicePart> parts = slice_parts(index_, pieces_, name, whole, wanted);
  const Tensor tensor = make(whole.dtype, shape_of(wanted));
  for (const SlicePart& part : parts) {
    const std::string where = index_.where(name, *part.piece);
    if (part.box == wanted) {
      add_piece(*part.piece, where, tensor);
    } else {
      add_copy(*part.piece, where, part.box, tensor, wanted);
    }
  }
  return tensor;
}

Tensor TensorAssembly::add(std::string_view name, const std::optional<TensorSlice>& slice) {
  const StoredPiece& whole = index_.piece(name);
  PieceReader::check_shape(whole.entry, whole.size, index_.where(name, whole));
  const Shape& shape = whole.entry.shape;
  const TensorSlice wanted = slice.value_or(TensorSlice::full(shape.rank())).within(shape);
  return whole.entry.slices.empty() ? add_whole(name, whole, wanted) : add_assembled(name, whole.entry, wanted);
}

void TensorAssembly::finish() {
  pieces_.read(wanted_);
  for (const WantedPiece& wanted : wanted_) {
    if (wanted.error) std::rethrow_exception(wanted.error);
  }
  for (Copy& copy : copies_) copy_common(wanted_[copy.piece].out, copy.from_box, copy.to, copy.to_box);
  wanted_.clear();
  copies_.clear();
  temporary_bytes_ = 0;
}

}  // namespace longhaul
