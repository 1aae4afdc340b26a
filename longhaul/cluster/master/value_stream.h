#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "longhaul/session/task_snapshots.h"

namespace longhaul {

class RenewedCalls;
class SessionTasks;
class TakenSnapshot;
struct Message;

// How values come to this process.
struct StreamLimits {
  uint64_t piece = uint64_t{8} << 20;       // bytes of one call
  uint64_t in_flight = uint64_t{64} << 20;  // of all that were asked for and not yet taken; at least one piece
};

// The values of a taken snapshot, piece by piece: the next ones are on their way while one is used. One thread.
class TakenStream : public ValueStream {
 public:
  // `order`: the values that are wanted. What it is made of must outlive it.
  TakenStream(SessionTasks& tasks, TakenSnapshot& taken, const std::vector<ValueOnTask>& values,
              const std::vector<size_t>& order, const StreamLimits& limits);
  ~TakenStream() override;

  Tensor next() override;

 private:
  struct Piece {
    size_t value;
    int64_t first, count;
    uint64_t bytes;
  };

  void plan(size_t value);
  void ask();
  void ask_for(const Piece& piece);
  Tensor checked(const Piece& piece, const Message& reply) const;

  SessionTasks& tasks_;
  TakenSnapshot& taken_;
  const std::vector<ValueOnTask>& values_;
  const StreamLimits limits_;
  const std::unique_ptr<RenewedCalls> calls_;  // the number of a call is that of its piece
  std::vector<Piece> pieces_;
  std::map<size_t, Tensor> arrived_;
  size_t asked_ = 0, given_ = 0;  // how many of the pieces
  uint64_t in_flight_ = 0;
};

}  // namespace longhaul
