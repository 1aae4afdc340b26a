#include "longhaul/checkpoint/bundle/piece_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/piece_checksum.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/table/wire.h"

namespace longhaul {
namespace {

constexpr int kVariant = 21;  // its checksums are of another kind

template <typename Word>
void swap_words(char* bytes, size_t size) {
  for (size_t i = 0; i + sizeof(Word) <= size; i += sizeof(Word)) {
    const Word word = wire::byte_swapped(wire::load<Word>(bytes + i));
    std::memcpy(bytes + i, &word, sizeof word);
  }
}

void swap_bytes(Tensor& tensor) {
  const bool complex = tensor.dtype() == kComplex64 || tensor.dtype() == kComplex128;
  char* bytes = static_cast<char*>(tensor.mutable_data());
  switch (dtype_size(tensor.dtype()) / (complex ? 2 : 1)) {
    case 2: return swap_words<uint16_t>(bytes, tensor.size_bytes());
    case 4: return swap_words<uint32_t>(bytes, tensor.size_bytes());
    case 8: return swap_words<uint64_t>(bytes, tensor.size_bytes());
    default: return;  // a byte, or a string
  }
}

// An error of the file system's, which names the file, with the tensor's name.
std::exception_ptr named(const std::exception_ptr& error, const std::string& where) {
  try {
    throw_error(code_of(error), fmt::format("{}: {}", where, message_of(error)));
  } catch (const Error&) {
    return std::current_exception();
  }
}

template <typename Work>
bool attempt(WantedPiece& wanted, Work work) {
  try {
    work();
    return true;
  } catch (const Error&) {
    wanted.error = std::current_exception();
    return false;
  }
}

}  // namespace

// What is read of one data file.
class PieceReader::Batch {
 public:
  void add(const ReadableFile& file, WantedPiece& wanted) {
    file_ = &file;
    char* out = wanted.out.defined() ? static_cast<char*>(wanted.out.mutable_data()) : nullptr;
    requests_.push_back({static_cast<uint64_t>(wanted.piece->offset), out, static_cast<size_t>(wanted.piece->size)});
    wanted_.push_back(&wanted);
  }

  void read(bool big_endian, const std::function<void(uint64_t bytes)>& on_bytes) {
    checksums_.resize(requests_.size());
    file_->read_batch(requests_, [&](const ReadPart& part) {
      if (on_bytes) on_bytes(part.bytes.size());
      if (part.error) {
        wanted_[part.request]->error = named(part.error, wanted_[part.request]->where);
      } else {
        checksums_[part.request].add(part.begin, part.bytes);
      }
    });
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (wanted_[i]->error) continue;
      const StoredBytes stored{requests_[i].count, wanted_[i]->piece->crc};
      const bool whole = attempt(*wanted_[i], [&] { checksums_[i].check(stored, wanted_[i]->where); });
      if (whole && big_endian && wanted_[i]->out.defined()) swap_bytes(wanted_[i]->out);
    }
  }

 private:
  const ReadableFile* file_ = nullptr;
  std::vector<ReadRequest> requests_;
  std::vector<WantedPiece*> wanted_;  // of each request, as the next
  std::vector<PieceChecksum> checksums_;
};

// An index that names a file which is not there is of a damaged checkpoint, unless all of it was removed meanwhile.
std::unique_ptr<const ReadableFile> PieceReader::open_shard(const std::string& path) const {
  try {
    return files_.open(path);
  } catch (const NotFoundError& error) {
    if (!files_.exists(index_path(index_.committed()))) throw;
    throw DataLossError(error.what());
  } catch (const InvalidArgumentError& error) {  // no file, but a directory, a pipe, a socket
    throw DataLossError(error.what());
  }
}

const ReadableFile& PieceReader::shard(int number) const {
  MutexLock lock(mutex_);
  auto& file = shards_[number];
  if (file == nullptr) file = open_shard(data_path(index_.committed(), number, index_.num_shards()));
  return *file;
}

const ReadableFile& PieceReader::file_of(const StoredPiece& piece, const std::string& where) const {
  if (piece.shard < 0 || piece.shard >= index_.num_shards()) {
    throw DataLossError(
        fmt::format("{}: it is in data file {}, but there are {} data files", where, piece.shard, index_.num_shards()));
  }
  if (piece.offset < 0 || piece.size < 0) {
    throw DataLossError(
        fmt::format("{}: Invalid size in bundle entry: {} bytes at {}", where, piece.size, piece.offset));
  }
  const ReadableFile& file = shard(piece.shard);
  const auto file_size = static_cast<int64_t>(file.size());
  if (piece.offset > file_size || piece.size > file_size - piece.offset) {
    throw DataLossError(fmt::format("{}: it has {} bytes at {}, but data file {} has {} bytes", where, piece.size,
                                    piece.offset, piece.shard, file_size));
  }
  return file;
}

void PieceReader::check_shape(const BundleEntry& entry, int64_t stored, const std::string& where) {
  if (!is_known_dtype(entry.dtype)) {
    throw UnimplementedError(fmt::format("{}: {} is not supported", where, stored_dtype_name(entry.dtype)));
  }
  const int64_t elements = entry.shape.fully_defined() ? entry.shape.num_elements() : -1;
  if (elements < 0) throw DataLossError(fmt::format("{}: impossible shape {}", where, entry.shape.to_string()));
  if (!entry.slices.empty()) return;
  const auto dtype = static_cast<DType>(entry.dtype);
  int64_t size = 0;
  const auto element_size = static_cast<int64_t>(dtype_size(dtype));
  const bool fits = !__builtin_mul_overflow(elements, element_size, &size);
  // A string takes a byte at least for its length, and the lengths have a checksum.
  const bool right = dtype == kString ? elements <= stored - 4 : fits && size == stored;
  if (right) return;
  throw DataLossError(fmt::format("{}: Invalid size in bundle entry: stored {} bytes for {}{}", where, stored,
                                  dtype_name(dtype), entry.shape.to_string()));
}

void PieceReader::check(const StoredPiece& piece, const std::string& where) const {
  check_shape(piece.entry, piece.size, where);
  file_of(piece, where);
}

// Strings are of any size, one by one; so they are read in turn.
void PieceReader::read_strings_of(const ReadableFile& file, WantedPiece& wanted) const {
  const StoredPiece& piece = *wanted.piece;
  const StoredBytes stored{static_cast<uint64_t>(piece.size), piece.crc};
  try {
    const auto offset = static_cast<uint64_t>(piece.offset);
    if (wanted.out.defined()) {
      read_strings(file, offset, stored, index_.big_endian(), wanted.where, wanted.out.mutable_flat<std::string>());
    } else {
      const auto count = static_cast<uint64_t>(piece.entry.shape.num_elements());
      verify_strings(file, offset, stored, index_.big_endian(), wanted.where, count);
    }
  } catch (const DataLossError&) {
    throw;
  } catch (const Error&) {
    std::rethrow_exception(named(std::current_exception(), wanted.where));
  }
}

void PieceReader::read(std::span<WantedPiece> wanted, const std::function<void(uint64_t bytes)>& on_bytes) const {
  std::map<int, Batch> batches;
  for (WantedPiece& one : wanted) {
    attempt(one, [&] {
      const StoredPiece& piece = *one.piece;
      if (is_known_dtype(piece.entry.dtype)) check_shape(piece.entry, piece.size, one.where);
      const ReadableFile& file = file_of(piece, one.where);
      if (piece.entry.dtype == kString) return read_strings_of(file, one);
      if (piece.entry.dtype != kVariant) batches[piece.shard].add(file, one);
    });
  }
  for (auto& [shard, batch] : batches) batch.read(index_.big_endian(), on_bytes);
}

}  // namespace longhaul
