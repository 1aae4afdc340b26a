#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/piece_reader.h"

namespace longhaul {

// The stored slices from which the part `wanted` of a tensor can be assembled: each element of the part is in exactly
// one of them. PieceReader::check() checks each slice. DataLossError: there is no such set of slices.
struct SlicePart {
  TensorSlice box;  // with explicit lengths
  const StoredPiece* piece = nullptr;
};
std::vector<SlicePart> slice_parts(const BundleIndex& index, const PieceReader& pieces, std::string_view name,
                                   const BundleEntry& whole, const TensorSlice& wanted);

// Tensors that are read together. Pieces that are whole tensors are read directly into them; others go through
// temporary memory that is freed after the copy, at most kMostTemporary bytes at a time (but at least one piece).
//
//   add()... -> finish()
class TensorAssembly {
 public:
  static constexpr uint64_t kMostTemporary = uint64_t{256} << 20;

  TensorAssembly(const BundleIndex& index, const PieceReader& pieces, const BundleReader::MakeTensor& make)
      : index_(index), pieces_(pieces), make_(make) {}

  // The tensor, or a part of it; its bytes are valid once finish() has returned.
  Tensor add(std::string_view name, const std::optional<TensorSlice>& slice);

  // Throws the error of the first tensor that failed.
  void finish();

 private:
  // A part of a piece that is copied after it is read.
  struct Copy {
    size_t piece = 0;  // its index in wanted_
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
