#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/piece_reader.h"

namespace longhaul {

// What `wanted` of a tensor can be put together from: the stored slices that lie in it, each of its elements in exactly
// one of them, each checked as PieceReader::check() does. DataLossError: there is no such set of slices.
struct SlicePart {
  TensorSlice box;  // with all its lengths
  const StoredPiece* piece = nullptr;
};
std::vector<SlicePart> slice_parts(const BundleIndex& index, const PieceReader& pieces, std::string_view name,
                                   const BundleEntry& whole, const TensorSlice& wanted);

// Tensors that are read together: pieces that are tensors as they are go straight to them, others through memory that
// is given back after the copy, at most kMostTemporary bytes of it at a time (but one piece at least).
//
//   add()... -> finish()
class TensorAssembly {
 public:
  static constexpr uint64_t kMostTemporary = uint64_t{256} << 20;

  TensorAssembly(const BundleIndex& index, const PieceReader& pieces, const BundleReader::MakeTensor& make)
      : index_(index), pieces_(pieces), make_(make) {}

  // The tensor, or a part of it: its bytes are there once finish() has returned.
  Tensor add(std::string_view name, const std::optional<TensorSlice>& slice);

  // Throws the error of the first tensor that has one.
  void finish();

 private:
  // A part of a piece that is copied once it was read.
  struct Copy {
    size_t piece = 0;  // its number among the wanted ones
    TensorSlice from_box;
    Tensor to;
    TensorSlice to_box;
  };

  Tensor make(int dtype, const Shape& shape) const;
  void add_piece(const StoredPiece& piece, const std::string& where, const Tensor& out);
  void add_copy(const StoredPiece& piece, const std::string& where, const TensorSlice& box, const Tensor& to,
                const TensorSlice& to_box);
  Tensor add_whole(std::string_view name, const StoredPiece& whole, const TensorSlice& wanted);
  Tensor add_assembled(std::string_view name, const BundleEntry& whole, const TensorSlice& wanted);

  const BundleIndex& index_;
  const PieceReader& pieces_;
  const BundleReader::MakeTensor& make_;
  std::vector<WantedPiece> wanted_;
  std::vector<Copy> copies_;
  uint64_t temporary_bytes_ = 0;
};

}  // namespace longhaul
