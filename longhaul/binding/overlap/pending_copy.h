#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/binding/overlap/device_copy.h"

namespace longhaul {

// Copies of tensors as they are at one moment, made while training continues: each piece is copied before it is written
// to, by the thread that is about to write, or earlier by another.
//
//   at the moment: add() ... close()   then: copy_next() ..., before_write() ...   in the end: finish(), problem()
//
// A piece is to be copied, or to be compared with its copy; then in one thread's hand; then done. The tensors' memory
// is kept until the end, so it does not matter what becomes of the tensors. add() and close() are for one thread,
// before others know of the object; afterwards any thread may call.
class PendingCopy {
 public:
  static constexpr size_t kPiece = size_t{256} << 10;  // bytes: a step may have to wait for one
  static constexpr size_t kAtOnce = size_t{1} << 20;   // bytes of small tensors: a tenth of a millisecond
  static constexpr size_t kInTurn = 4;                 // pieces
  static constexpr size_t kSamples = 4;                // words of each tensor

  enum class Kind {
    kLater,  // the bytes come later
    kProof,  // the bytes are copied at once, and compared when libtorch announces a write, or at the end
  };
  // `turn`: which words are samples, and which kInTurn pieces are copied at once and compared in kLater, too. One more
  // each time.
  explicit PendingCopy(Kind kind, uint64_t turn = 0)
      : kind_(kind), turn_(turn), devices_(/*is_proof=*/kind == Kind::kProof, turn) {}
  PendingCopy(const PendingCopy&) = delete;

  // Copies at once what is small, or not contiguous in host memory; of other devices' memory nothing (DeviceCopy).
  void add(const std::string& name, const at::Tensor& source, const at::Tensor& destination);
  void close();
  bool empty() const { return parts_.empty() && devices_.empty(); }  // all was copied at once

  // Copies the next piece that nobody has in hand, or has a device copy a tensor; false: there is none.
  bool copy_next();
  // What is about to be written to, whoever wrote there before: returns when its pieces are done.
  void before_write(const void* begin, const void* end);
  bool covers(const void* begin, const void* end) const;
  // False: some pieces are still to be copied, or in a thread's hand.
  bool wait_until_copied(Seconds timeout) EXCLUDES(mutex_);
  // Copies and compares what is left, and waits for what others have in hand.
  void finish();

  // A write that could have changed the source was announced.
  bool was_written() { return was_written_.load() || devices_.was_written(); }
  // Whether a sample of a source is no longer what it was at the moment. It waits for other devices than the CPU.
  bool samples_changed();
  // Writes can no longer be followed, for this reason.
  void spoil(std::string why) EXCLUDES(mutex_);
  // After finish(): why the copies may not be those of the moment; nullopt: they are.
  std::optional<std::string> problem() EXCLUDES(mutex_);

 private:
  enum State : uint8_t { kToCopy, kToCompare, kInHand, kDone };
  struct Part {
    std::string name;
    at::Tensor source, destination;
    c10::Storage storage;  // the source's at the moment
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    size_t bytes = 0;
    size_t first_piece = 0;
    std::array<uint64_t, kSamples> samples{};

    size_t pieces() const { return (bytes + kPiece - 1) / kPiece; }
  };

  size_t sample_place(const Part& part, size_t sample) const;
  uint64_t sample_of(const Part& part, size_t sample, const std::byte* bytes) const;
  const Part& part_of(size_t piece) const;
  bool take_in_hand(size_t piece, State from);
  void copy(size_t piece);
  void compare(size_t piece);
  void done(size_t piece);
  void do_or_leave(size_t piece);
  void await(size_t piece) EXCLUDES(mutex_);
  template <typename Do>
  void for_each_piece(const void* begin, const void* end, const Do& what) const;

  const Kind kind_;
  const uint64_t turn_;
  DeviceCopy devices_;
  size_t at_once_ = 0;                                                // bytes
  std::vector<Part> parts_;                                           // in the order of add()
  std::vector<std::pair<const std::byte*, const Part*>> by_address_;  // each part, with the end of it and of all before
  size_t pieces_ = 0;
  std::unique_ptr<std::atomic<uint8_t>[]> states_;  // of each piece
  std::atomic<size_t> next_{0};
  std::atomic<size_t> uncopied_{0};  // pieces
  std::atomic<bool> was_written_{false};
  std::atomic<int> waiting_{0};

  Mutex mutex_;
  CondVar changed_;
  std::string why_ GUARDED_BY(mutex_);  // empty: all is well
};

}  // namespace longhaul
