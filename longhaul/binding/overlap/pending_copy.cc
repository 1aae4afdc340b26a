#include "longhaul/binding/overlap/pending_copy.h"

#include <emmintrin.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace longhaul {
namespace {

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous() && !tensor.is_conj() &&
         !tensor.is_neg();
}

// Past the caches, which the training needs for itself. `to` is aligned to 16 bytes.
void copy_past_caches(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t whole = bytes / sizeof(__m128i) * sizeof(__m128i);
  for (size_t at = 0; at < whole; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
  _mm_sfence();
  std::memcpy(to + whole, from + whole, bytes - whole);
}

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) == 0) {
    copy_past_caches(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void notify(const std::atomic<int>& waiting, Mutex& mutex, CondVar& changed) {
  if (waiting.load() == 0) return;
  const MutexLock lock(mutex);
  changed.notify_all();
}

}  // namespace

void PendingCopy::add(const std::string& name, const at::Tensor& source, const at::Tensor& destination) {
  if (DeviceCopy::takes(source, destination)) return devices_.add(name, source, destination);
  const size_t bytes = source.nbytes();
  const bool is_small = at_once_ + bytes <= kAtOnce;
  const bool comes_later =
      !is_small && is_plain(source) && is_plain(destination) && source.scalar_type() == destination.scalar_type();
  if (!comes_later || kind_ == Kind::kProof) destination.copy_(source);
  if (is_small) at_once_ += bytes;
  if (!comes_later) return;
  Part part{.name = name, .source = source, .destination = destination, .storage = source.storage()};
  part.from = static_cast<const std::byte*>(source.data_ptr());
  part.to = static_cast<std::byte*>(destination.data_ptr());
  part.bytes = bytes;
  part.first_piece = pieces_;
  pieces_ += part.pieces();
  for (size_t i = 0; i < kSamples; ++i) part.samples[i] = sample_of(part, i, part.from);
  parts_.push_back(std::move(part));
}

void PendingCopy::close() {
  devices_.close();
  if (parts_.empty()) return;
  for (const Part& part : parts_) by_address_.emplace_back(part.from + part.bytes, &part);
  std::sort(by_address_.begin(), by_address_.end(),
            [](const auto& a, const auto& b) { return a.second->from < b.second->from; });
  for (size_t i = 1; i < by_address_.size(); ++i) {
    by_address_[i].first = std::max(by_address_[i].first, by_address_[i - 1].first);
  }
  states_ = std::make_unique<std::atomic<uint8_t>[]>(pieces_);
  for (size_t i = 0; i < pieces_; ++i) states_[i] = kind_ == Kind::kLater ? kToCopy : kToCompare;
  if (kind_ == Kind::kProof) return;
  uncopied_ = pieces_;
  for (size_t i = 0; i < std::min(kInTurn, pieces_); ++i) {
    const size_t piece = (turn_ * kInTurn + i) % pieces_;
    copy(piece);
    --uncopied_;
    states_[piece] = kToCompare;
  }
}

// Others in each turn: a write to a few elements would not be found by samples that are always the same.
size_t PendingCopy::sample_place(const Part& part, size_t sample) const {
  const size_t width = std::min(part.bytes, sizeof(uint64_t));
  return (turn_ * kSamples + sample) * 0x9e3779b97f4a7c15 % (part.bytes - width + 1);
}

uint64_t PendingCopy::sample_of(const Part& part, size_t sample, const std::byte* bytes) const {
  uint64_t word = 0;
  std::memcpy(&word, bytes + sample_place(part, sample), std::min(part.bytes, sizeof(word)));
  return word;
}

const PendingCopy::Part& PendingCopy::part_of(size_t piece) const {
  const auto behind = std::upper_bound(parts_.begin(), parts_.end(), piece,
                                       [](size_t one, const Part& part) { return one < part.first_piece; });
  return *std::prev(behind);
}

bool PendingCopy::take_in_hand(size_t piece, State from) {
  uint8_t expected = from;
  return states_[piece].compare_exchange_strong(expected, kInHand);
}

void PendingCopy::copy(size_t piece) {
  const Part& part = part_of(piece);
  const size_t at = (piece - part.first_piece) * kPiece;
  copy_bytes(part.to + at, part.from + at, std::min(kPiece, part.bytes - at));
}

void PendingCopy::compare(size_t piece) {
  const Part& part = part_of(piece);
  const size_t at = (piece - part.first_piece) * kPiece;
  if (std::memcmp(part.to + at, part.from + at, std::min(kPiece, part.bytes - at)) == 0) return;
  spoil(fmt::format("{} was changed in a way that libtorch does not announce", part.name));
}

void PendingCopy::done(size_t piece) {
  states_[piece] = kDone;
  notify(waiting_, mutex_, changed_);
}

bool PendingCopy::copy_next() {
  if (devices_.start_next()) {
    notify(waiting_, mutex_, changed_);
    return true;
  }
  for (size_t piece = next_++; piece < pieces_; piece = next_++) {
    if (!take_in_hand(piece, kToCopy)) continue;
    copy(piece);
    --uncopied_;
    done(piece);
    return true;
  }
  return false;
}

void PendingCopy::do_or_leave(size_t piece) {
  if (take_in_hand(piece, kToCopy)) {
    copy(piece);
    --uncopied_;
    done(piece);
  } else if (take_in_hand(piece, kToCompare)) {
    compare(piece);
    done(piece);
  }
}

void PendingCopy::await(size_t piece) {
  if (states_[piece] == kDone) return;
  ++waiting_;
  {
    const MutexLock lock(mutex_);
    while (states_[piece] != kDone) changed_.wait(mutex_);  // wait: another thread copies two megabytes
  }
  --waiting_;
}

template <typename Do>
void PendingCopy::for_each_piece(const void* begin, const void* end, const Do& what) const {
  const auto* const first = static_cast<const std::byte*>(begin);
  const auto* const last = static_cast<const std::byte*>(end);
  auto behind = std::lower_bound(by_address_.begin(), by_address_.end(), last,
                                 [](const auto& part, const std::byte* place) { return part.second->from < place; });
  for (; behind != by_address_.begin() && std::prev(behind)->first > first; --behind) {
    const Part& part = *std::prev(behind)->second;
    if (part.from + part.bytes <= first) continue;
    const size_t from = first > part.from ? static_cast<size_t>(first - part.from) / kPiece : 0;
    const size_t to = (std::min(part.bytes, static_cast<size_t>(last - part.from)) + kPiece - 1) / kPiece;
    for (size_t i = from; i < to; ++i) what(part.first_piece + i);
  }
}

bool PendingCopy::covers(const void* begin, const void* end) const {
  bool found = false;
  for_each_piece(begin, end, [&](size_t) { found = true; });
  return found || devices_.covers(begin, end);
}

void PendingCopy::before_write(const void* begin, const void* end) {
  devices_.before_write(begin, end);
  for_each_piece(begin, end, [this](size_t piece) {
    was_written_ = true;
    do_or_leave(piece);
  });
  for_each_piece(begin, end, [this](size_t piece) { await(piece); });
}

bool PendingCopy::wait_until_copied(Seconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  ++waiting_;
  {
    const MutexLock lock(mutex_);
    while (uncopied_ > 0 || !devices_.all_started()) {
      const Seconds left = until - std::chrono::steady_clock::now();
      if (left <= Seconds{0}) break;
      changed_.wait_for(mutex_, left);  // wait: for the last piece, or until the caller copies, too
    }
  }
  --waiting_;
  return uncopied_ == 0 && devices_.all_started();
}

void PendingCopy::finish() {
  devices_.finish();
  for (size_t piece = 0; piece < pieces_; ++piece) do_or_leave(piece);
  for (size_t piece = 0; piece < pieces_; ++piece) await(piece);
}

bool PendingCopy::samples_changed() {
  if (devices_.was_changed()) return true;
  return std::any_of(parts_.begin(), parts_.end(), [this](const Part& part) {
    for (size_t i = 0; i < kSamples; ++i) {
      if (sample_of(part, i, part.from) != part.samples[i]) return true;
    }
    return false;
  });
}

void PendingCopy::spoil(std::string why) {
  const MutexLock lock(mutex_);
  if (why_.empty()) why_ = std::move(why);
}

std::optional<std::string> PendingCopy::problem() {
  {
    const MutexLock lock(mutex_);
    if (!why_.empty()) return why_;
  }
  if (auto of_device = devices_.problem()) return of_device;
  for (const Part& part : parts_) {
    for (size_t i = 0; i < kSamples; ++i) {
      if (sample_of(part, i, part.to) == part.samples[i]) continue;
      return fmt::format("{} was changed in a way that libtorch does not announce", part.name);
    }
  }
  return std::nullopt;
}

}  // namespace longhaul
