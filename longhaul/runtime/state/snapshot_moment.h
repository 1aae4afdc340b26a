#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace longhaul {

// The moment between two steps at which a snapshot reads all values. A value of many bytes may come later: its tensor
// is there at once, and its bytes when complete() returns, while steps go on.
//
//   inside the gate: read the values, close()  -->  outside: complete(), then the values may be used
//
// A value's owner finds the moment by of_this_thread(), and leaves there what it still has to do. One thread at a time.
class SnapshotMoment {
 public:
  // What one owner still has to do for its values. Destroyed without complete() if the snapshot failed.
  class Rest {
   public:
    virtual ~Rest() = default;
    // Inside the gate, after the last value was read.
    virtual void close() = 0;
    // When steps go on; returns when the values have their bytes. False: some are not those of the moment.
    virtual bool complete() = 0;
  };

  SnapshotMoment() = default;
  SnapshotMoment(const SnapshotMoment&) = delete;

  // While it lives, this thread reads values of the moment.
  class Reading {
   public:
    explicit Reading(SnapshotMoment& moment);
    ~Reading();
    Reading(const Reading&) = delete;
  };
  // nullptr: what this thread reads now is used at once.
  static SnapshotMoment* of_this_thread();

  // What this owner has left; nullptr: nothing yet.
  Rest* find(const void* owner) const;
  void add(const void* owner, std::unique_ptr<Rest> rest) { rests_.emplace_back(owner, std::move(rest)); }

  void close();
  // False: at least one owner's values are not those of the moment. All owners have completed theirs.
  bool complete();

 private:
  std::vector<std::pair<const void*, std::unique_ptr<Rest>>> rests_;
};

}  // namespace longhaul
