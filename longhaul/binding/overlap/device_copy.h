#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// The part of a PendingCopy whose tensors are on other devices than the CPU. Their copies are made on a stream of
// their own while all other streams go on: before one of these writes to a tensor, it waits for that tensor's copy,
// on the device. The host waits in finish() alone. A wrong copy is found by sums: of the tensor at the moment, and
// before the first write that was announced. (Of all tensors in a proof; else of a few, in turn.)
//
// The functions are those of PendingCopy, and may be called as they may. What a device says of itself is a problem().
class DeviceCopy {
 public:
  static constexpr size_t kInTurn = 4;  // tensors

  DeviceCopy(bool is_proof, uint64_t turn) : is_proof_(is_proof), turn_(turn) {}
  DeviceCopy(const DeviceCopy&) = delete;

  // Whether it copies from there: the device has streams and events.
  static bool takes(const at::Tensor& source, const at::Tensor& destination);

  void add(const std::string& name, const at::Tensor& source, const at::Tensor& destination) EXCLUDES(mutex_);
  void close() EXCLUDES(mutex_);
  bool empty() const { return by_address_.empty(); }  // after close()

  bool start_next() EXCLUDES(mutex_);  // has the next copy made
  bool all_started() EXCLUDES(mutex_);
  void before_write(const void* begin, const void* end) EXCLUDES(mutex_);
  bool covers(const void* begin, const void* end) const;
  void finish() EXCLUDES(mutex_);

  bool was_written() EXCLUDES(mutex_);
  // In a proof: whether a tensor without an announced write has changed. It waits for the devices.
  bool was_changed() EXCLUDES(mutex_);
  std::optional<std::string> problem() EXCLUDES(mutex_);

 private:
  struct OnDevice {
    c10::Stream training;  // the steps'
    c10::Stream copies;
    std::optional<c10::Event> moment = std::nullopt;
  };
  struct Part {
    std::string name;
    at::Tensor source, destination;
    c10::Storage storage;  // the source's at the moment
    size_t device;
    bool is_started = false;
    std::optional<c10::Event> copied = std::nullopt;
    std::optional<c10::Stream> waits = std::nullopt;  // for `copied`: the last one that was made to
    at::Tensor sum = {}, later = {};  // at the moment, and before the first write; undefined: not looked at
  };
  struct Place {
    const std::byte* begin;
    const std::byte* end;
    const std::byte* furthest;  // end of this and all before
    size_t part;
  };

  size_t device_of(const at::Tensor& tensor) REQUIRES(mutex_);
  void start(Part& part) REQUIRES(mutex_);
  void look_again(Part& part, const c10::Stream& stream) REQUIRES(mutex_);
  std::vector<size_t> changed(const std::vector<size_t>& parts, const std::vector<at::Tensor>& later) REQUIRES(mutex_);
  void spoil(const std::string& why) REQUIRES(mutex_);
  template <typename Do>
  void for_each_part(const void* begin, const void* end, const Do& what) const;

  const bool is_proof_;
  const uint64_t turn_;
  std::vector<Place> by_address_;  // not changed after close()
  Mutex mutex_;
  std::vector<OnDevice> devices_ GUARDED_BY(mutex_);
  std::vector<Part> parts_ GUARDED_BY(mutex_);
  size_t next_ GUARDED_BY(mutex_) = 0;  // parts before it are started
  bool was_written_ GUARDED_BY(mutex_) = false;
  std::string why_ GUARDED_BY(mutex_);  // empty: all is well
};

}  // namespace longhaul
