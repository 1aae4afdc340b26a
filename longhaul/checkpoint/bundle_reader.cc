#include "longhaul/checkpoint/bundle_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/checkpoint/bundle_format.h"
#include "longhaul/checkpoint/bundle_proto.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/checkpoint/set_aside.h"
#include "longhaul/checkpoint/string_tensor.h"
#include "longhaul/checkpoint/table.h"
#include "longhaul/checkpoint/wire.h"
#include "longhaul/io/crc32c.h"

namespace longhaul {
namespace {

constexpr int kVariant = 21;  // its checksums are of another kind

// Keys share their beginnings in the file; an index of honest names does not grow by more than this when they are spelt
// out.
uint64_t most_key_bytes(uint64_t file_size) {
  return (uint64_t{1} << 20) + 64 * file_size;
}

void check_version(const proto::VersionDef& version, const std::string& path) {
  constexpr int kOurs = bundle_format::kVersion;
  if (version.min_consumer() > kOurs) {
    throw InvalidArgumentError(
        fmt::format("{}: Checkpoint min consumer version {} above current version {}: a newer reader is needed", path,
                    version.min_consumer(), kOurs));
  }
  if (version.producer() < bundle_format::kMinProducer) {
    throw InvalidArgumentError(fmt::format("{}: Checkpoint producer version {} below min producer {} supported", path,
                                           version.producer(), bundle_format::kMinProducer));
  }
  const auto& bad = version.bad_consumers();
  if (std::find(bad.begin(), bad.end(), kOurs) != bad.end()) {
    throw InvalidArgumentError(fmt::format("{}: Checkpoint disallows consumer version {}", path, kOurs));
  }
}

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
  }
}

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

// Calls `use` with the bytes, chunk by chunk, each in the memory that `buffer_for(done, size)` names, and checks their
// checksum.
template <typename BufferFor>
void read_checked(const ReadableFile& file, uint64_t offset, const StoredBytes& stored, const std::string& where,
                  BufferFor buffer_for) {
  uint32_t crc = 0;
  for (uint64_t done = 0; done < stored.size;) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(stored.size - done, bundle_format::kChunk));
    char* buffer = buffer_for(done);
    if (file.read(offset + done, buffer, size) != size) {
      throw DataLossError(where + ": the data file ended while it was read");
    }
    crc = extend_crc32c(crc, {buffer, size});
    done += size;
  }
  if (crc != stored.crc) throw_checksum_mismatch(where, "Checksum", stored.crc, crc);
}

}  // namespace

BundleReader::BundleReader(FileSystem& files, const std::string& prefix)
    : files_(files), prefix_(strip_file_scheme(prefix)) {
  read_index();
}

BundleReader::~BundleReader() = default;

// While another checkpoint of that name is committed, the index is first in one place, then in the other, then in the
// first.
std::unique_ptr<const ReadableFile> BundleReader::open_index() {
  for (const std::string& place : {prefix_, aside_prefix(prefix_), prefix_}) {
    try {
      auto file = files_.open(index_path(place));
      committed_ = place;
      return file;
    } catch (const NotFoundError&) {
    }
  }
  throw_no_index();
}

void BundleReader::throw_no_index() const {
  if (files_.exists(prefix_) && !files_.is_directory(prefix_) && Table::is_table(*files_.open(prefix_))) {
    throw UnimplementedError(fmt::format(
        "{} is a V1 checkpoint (a single file), which is not supported: restore it with TensorFlow and save it "
        "again with write_version=V2",
        prefix_));
  }
  throw NotFoundError(fmt::format("Not found: there is no checkpoint {} (no file {})", prefix_, index_path(prefix_)));
}

void BundleReader::read_index() {
  auto file = open_index();
  const std::string path = index_path(committed_);
  const Table table(std::move(file), path);
  auto cursor = table.seek("");
  if (!cursor.valid() || !cursor.key().empty()) throw DataLossError(path + ": the index has no header");
  read_header(cursor.value(), path);
  uint64_t key_bytes = 0;
  for (cursor.next(); cursor.valid(); cursor.next()) {
    key_bytes += cursor.key().size();
    if (key_bytes > most_key_bytes(table.file_size()))
      throw DataLossError(path + ": the keys take more than is credible");
    add_entry(cursor.key(), cursor.value(), path);
  }
  add_up_slices();
}

void BundleReader::read_header(std::string_view bytes, const std::string& path) {
  proto::BundleHeaderProto header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(path + ": the header cannot be parsed");
  }
  check_version(header.version(), path);
  if (header.num_shards() < 1) throw DataLossError(fmt::format("{}: {} data files", path, header.num_shards()));
  num_shards_ = header.num_shards();
  big_endian_ = header.endianness() == proto::BundleHeaderProto::BIG;
}

void BundleReader::add_entry(const std::string& key, std::string_view bytes, const std::string& path) {
  proto::BundleEntryProto message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(fmt::format("{}: the entry of {} cannot be parsed", path, key));
  }
  Piece piece{.shard = message.shard_id(), .offset = message.offset(), .size = message.size()};
  piece.crc = unmask_crc32c(message.crc32c());
  piece.entry.dtype = message.dtype();
  piece.entry.shape = shape_from(message.shape());
  piece.entry.bytes = static_cast<uint64_t>(std::max<int64_t>(message.size(), 0));
  for (const auto& slice : message.slices()) piece.entry.slices.push_back(slice_from(slice));
  pieces_.emplace_hint(pieces_.end(), key, std::move(piece));
}

void BundleReader::add_up_slices() {
  for (auto& [key, piece] : pieces_) {
    for (const TensorSlice& slice : piece.entry.slices) {
      const auto stored = pieces_.find(slice_key(key, slice));
      if (stored != pieces_.end()) piece.entry.bytes += stored->second.entry.bytes;
    }
  }
}

std::string BundleReader::where(std::string_view name) const {
  return fmt::format("{}: tensor {}", committed_, name);
}

std::vector<std::string> BundleReader::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, piece] : pieces_) {
    if (key[0] != '\0') names.push_back(key);
  }
  return names;
}

const BundleReader::Entry* BundleReader::find(std::string_view name) const {
  const auto it = pieces_.find(name);
  return it == pieces_.end() || it->first[0] == '\0' ? nullptr : &it->second.entry;
}

const BundleReader::Entry& BundleReader::entry(std::string_view name) const {
  return piece(name).entry;
}

const BundleReader::Piece& BundleReader::piece(std::string_view name) const {
  const auto it = pieces_.find(name);
  if (it == pieces_.end()) throw NotFoundError(fmt::format("Key {} not found in checkpoint {}", name, prefix_));
  return it->second;
}

uint64_t BundleReader::total_bytes() const {
  uint64_t total = 0;
  for (const auto& [key, piece] : pieces_) {
    if (piece.entry.slices.empty()) total += piece.entry.bytes;
  }
  return total;
}

const ReadableFile& BundleReader::shard(int number) const {
  MutexLock lock(mutex_);
  auto& file = shards_[number];
  if (file == nullptr) file = files_.open(data_path(committed_, number, num_shards_));
  return *file;
}

const ReadableFile& BundleReader::checked_file(const Piece& piece, const std::string& where) const {
  if (piece.shard < 0 || piece.shard >= num_shards_) {
    throw DataLossError(fmt::format("{}: in data file {} of {}", where, piece.shard, num_shards_));
  }
  if (piece.offset < 0 || piece.size < 0) {
    throw DataLossError(
        fmt::format("{}: Invalid size in bundle entry: {} bytes at {}", where, piece.size, piece.offset));
  }
  const ReadableFile& file = shard(piece.shard);
  const auto file_size = static_cast<int64_t>(file.size());
  if (piece.offset > file_size || piece.size > file_size - piece.offset) {
    throw DataLossError(fmt::format("{}: {} bytes at {}, but the data file {} has {} bytes", where, piece.size,
                                    piece.offset, piece.shard, file_size));
  }
  return file;
}

void BundleReader::check_readable(const Piece& piece, const std::string& where) const {
  if (!is_known_dtype(piece.entry.dtype)) {
    throw UnimplementedError(fmt::format("{}: dtype {} is not supported", where, piece.entry.dtype));
  }
  const Shape& shape = piece.entry.shape;
  const int64_t elements = shape.fully_defined() ? shape.num_elements() : -1;
  if (elements < 0) throw DataLossError(fmt::format("{}: impossible shape {}", where, shape.to_string()));
  if (!piece.entry.slices.empty()) return;
  const auto dtype = static_cast<DType>(piece.entry.dtype);
  int64_t size = 0;
  const auto element_size = static_cast<int64_t>(dtype_size(dtype));
  const bool fits = !__builtin_mul_overflow(elements, element_size, &size);
  // A string takes a byte at least for its length, and the lengths have a checksum.
  const bool right = dtype == kString ? elements <= piece.size - 4 : fits && size == piece.size;
  if (right) return;
  throw DataLossError(fmt::format("{}: Invalid size in bundle entry: stored {} bytes for {}{}", where, piece.size,
                                  dtype_name(dtype), shape.to_string()));
}

Tensor BundleReader::read_piece(const Piece& piece, const std::string& where) const {
  check_readable(piece, where);
  const ReadableFile& file = checked_file(piece, where);
  const auto offset = static_cast<uint64_t>(piece.offset);
  const StoredBytes stored{static_cast<uint64_t>(piece.size), piece.crc};
  Tensor tensor(static_cast<DType>(piece.entry.dtype), piece.entry.shape);
  if (tensor.dtype() == kString) {
    read_strings(file, offset, stored, big_endian_, where, tensor.mutable_flat<std::string>());
    return tensor;
  }
  char* bytes = static_cast<char*>(tensor.mutable_data());
  read_checked(file, offset, stored, where, [bytes](uint64_t done) { return bytes + done; });
  if (big_endian_) swap_bytes(tensor);
  return tensor;
}

void BundleReader::verify_piece(const Piece& piece, const std::string& where) const {
  if (!piece.entry.slices.empty()) {
    check_readable(piece, where);
    return;
  }
  if (piece.entry.dtype == kString) {
    read_piece(piece, where);
    return;
  }
  if (is_known_dtype(piece.entry.dtype)) check_readable(piece, where);
  const ReadableFile& file = checked_file(piece, where);
  if (piece.entry.dtype == kVariant) return;
  std::string buffer(static_cast<size_t>(std::min<int64_t>(piece.size, bundle_format::kChunk)), '\0');
  read_checked(file, static_cast<uint64_t>(piece.offset), {static_cast<uint64_t>(piece.size), piece.crc}, where,
               [&buffer](uint64_t) { return buffer.data(); });
}

std::vector<std::string> BundleReader::verify() const {
  std::vector<std::string> damages;
  for (const auto& [key, piece] : pieces_) {
    try {
      verify_piece(piece, where(key));
      if (!piece.entry.slices.empty()) parts_of(key, piece.entry, TensorSlice::full(piece.entry.shape.rank()));
    } catch (const Error& error) {
      damages.emplace_back(error.what());
    }
  }
  return damages;
}

Tensor BundleReader::read(std::string_view name) const {
  const Piece& whole = piece(name);
  if (whole.entry.slices.empty()) return read_piece(whole, where(name));
  return read_slice(name, TensorSlice::full(whole.entry.shape.rank()));
}

Tensor BundleReader::read_slice(std::string_view name, const TensorSlice& slice) const {
  const Piece& whole = piece(name);
  check_readable(whole, where(name));
  const TensorSlice wanted = slice.within(whole.entry.shape);
  if (!whole.entry.slices.empty()) return assembled(name, whole.entry, wanted);
  const Tensor all = read_piece(whole, where(name));
  if (wanted.covers(whole.entry.shape)) return all;
  Tensor part(all.dtype(), shape_of(wanted));
  copy_common(all, TensorSlice::full(whole.entry.shape.rank()).within(whole.entry.shape), part, wanted);
  return part;
}

// The stored slice, after checking that it is what the whole says, and that its bytes are there.
BundleReader::Part BundleReader::stored_part(std::string_view name, const Entry& whole,
                                             const TensorSlice& stored) const {
  const std::string place = fmt::format("{}, slice {}", where(name), stored.to_string());
  const auto it = pieces_.find(slice_key(name, stored));
  if (it == pieces_.end()) throw DataLossError(place + ": it is not stored");
  const Piece& piece = it->second;
  Part part{.piece = &piece};
  try {
    part.box = stored.within(whole.shape);
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(fmt::format("{}: {}", place, error.what()));
  }
  if (piece.entry.dtype != whole.dtype || piece.entry.shape != shape_of(part.box)) {
    throw DataLossError(fmt::format("{}: it is stored with dtype {} and shape {}", place, piece.entry.dtype,
                                    piece.entry.shape.to_string()));
  }
  check_readable(piece, place);
  checked_file(piece, place);
  return part;
}

// What `wanted` can be put together from: the stored slices that lie in it, each of its elements in exactly one of
// them.
std::vector<BundleReader::Part> BundleReader::parts_of(std::string_view name, const Entry& whole,
                                                       const TensorSlice& slice) const {
  const TensorSlice wanted = slice.within(whole.shape);
  std::vector<Part> parts;
  int64_t found = 0;
  for (const TensorSlice& stored : whole.slices) {
    Part part = stored_part(name, whole, stored);
    const int64_t common = common_elements(part.box, wanted);
    if (common == 0) continue;
    for (const Part& other : parts) {
      if (common_elements(part.box, other.box) > 0) throw DataLossError(where(name) + ": its slices overlap");
    }
    found += common;
    parts.push_back(std::move(part));
  }
  const int64_t elements = shape_of(wanted).num_elements();
  if (found != elements) {
    throw DataLossError(fmt::format("{}: the stored slices hold {} of the {} elements of {}", where(name), found,
                                    elements, wanted.to_string()));
  }
  return parts;
}

Tensor BundleReader::assembled(std::string_view name, const Entry& whole, const TensorSlice& wanted) const {
  const std::vector<Part> parts = parts_of(name, whole, wanted);
  if (parts.size() == 1 && parts[0].box == wanted) return read_piece(*parts[0].piece, where(name));
  Tensor tensor(static_cast<DType>(whole.dtype), shape_of(wanted));
  for (const Part& part : parts) {
    copy_common(read_piece(*part.piece, where(name)), part.box, tensor, wanted);
  }
  return tensor;
}

}  // namespace longhaul
