#include "longhaul/cluster/master/value_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/cluster/master/renewed_calls.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {

TakenStream::TakenStream(SessionTasks& tasks, TakenSnapshot& taken, const std::vector<ValueOnTask>& values,
                         const std::vector<size_t>& order, const StreamLimits& limits)
    : tasks_(tasks),
      taken_(taken),
      values_(values),
      limits_(limits),
      calls_(std::make_unique<RenewedCalls>(tasks, taken)) {
  for (const size_t value : order) plan(value);
}

TakenStream::~TakenStream() = default;

void TakenStream::plan(size_t value) {
  const ValueOnTask& whole = values_.at(value);
  const int64_t elements = whole.shape.num_elements();
  if (elements == 0) return;
  if (whole.dtype == kString) {
    pieces_.push_back({value, 0, elements, whole.bytes});
    return;
  }
  const uint64_t size = dtype_size(whole.dtype);
  const int64_t most = static_cast<int64_t>(std::max<uint64_t>(limits_.piece / size, 1));
  for (int64_t first = 0; first < elements; first += most) {
    const int64_t count = std::min(most, elements - first);
    pieces_.push_back({value, first, count, static_cast<uint64_t>(count) * size});
  }
}

void TakenStream::ask() {
  while (asked_ < pieces_.size()) {
    const Piece& piece = pieces_[asked_];
    if (in_flight_ > 0 && in_flight_ + piece.bytes > limits_.in_flight) return;
    ask_for(piece);
    in_flight_ += piece.bytes;
    ++asked_;
  }
}

void TakenStream::ask_for(const Piece& piece) {
  constexpr Seconds kLongest{600};  // for all that is in flight on a slow line
  proto::ReadTakenRequest request;
  request.set_session(tasks_.session());
  request.set_snapshot(taken_.id());
  request.set_name(taken_.values().at(piece.value).name);
  request.set_first(piece.first);
  request.set_count(piece.count);
  calls_->start(values_[piece.value].task, methods::kReadTaken, to_message(request), kLongest);
}

Tensor TakenStream::next() {
  if (given_ == pieces_.size()) throw InternalError("more values of a snapshot were read than were asked for");
  return with_losses_told(tasks_, [&] {
    ask();
    while (!arrived_.contains(given_)) {
      const CallGroup::Ended ended = calls_->next();
      arrived_[ended.call] = checked(pieces_.at(ended.call), ended.reply.message);
    }
    const Tensor piece = std::move(arrived_.extract(given_).mapped());
    in_flight_ -= pieces_[given_++].bytes;
    return piece;
  });
}

Tensor TakenStream::checked(const Piece& piece, const Message& reply) const {
  const ValueOnTask& whole = values_[piece.value];
  if (reply.tensors.size() == 1 && reply.tensors[0].dtype() == whole.dtype &&
      reply.tensors[0].num_elements() == piece.count)
    return reply.tensors[0];
  throw InternalError(fmt::format("{} elements of {} from {} on were asked for, and {} sent something else",
                                  piece.count, taken_.values().at(piece.value).name, piece.first, whole.task));
}

}  // namespace longhaul
