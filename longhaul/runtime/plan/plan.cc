#include "longhaul/runtime/plan/plan.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>

#include "longhaul/base/clock.h"
#include "longhaul/runtime/devices/default_streams.h"
#include "longhaul/runtime/devices/device_error.h"
#include "longhaul/runtime/devices/host_copies.h"
#include "longhaul/runtime/plan/loss_shapes.h"
#include "longhaul/runtime/plan/prepared.h"
#include "longhaul/runtime/plan/tracer.h"
#include "longhaul/runtime/state/snapshot_moment.h"

namespace longhaul {
namespace {

bool has_one_failed(const DeviceTable& devices) {
  for (int i = 0; i < devices.gpus(); ++i) {
    if (has_failed(devices.gpu(i))) return true;
  }
  return false;
}

// Runs `body`; libtorch's errors become ours, with the operation's name.
template <typename Body>
void with_our_errors(const Operation& op, const DeviceTable& devices, const Body& body) {
  try {
    body();
  } catch (const c10::OutOfMemoryError& error) {  // of a device; that of the CPU's memory is told by its text
    throw ResourceExhaustedError(operation_error_text(op, error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    if (has_one_failed(devices))
      throw_device_error(operation_error_text(op, "a device has failed, here or before"), error);
    const std::string text = operation_error_text(op, error.what_without_backtrace());
    if (text.find("t allocate memory") != std::string::npos) throw ResourceExhaustedError(text);
    throw InvalidArgumentError(text);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {  // libtorch's, of a size that cannot be inferred
    if (!op.type().starts_with("aten::")) throw;
    throw InvalidArgumentError(operation_error_text(op, error.what()));
  } catch (const std::bad_alloc&) {
    throw ResourceExhaustedError(operation_error_text(op, "out of memory"));
  }
}

void check_count(size_t given, const std::vector<PlanParts::Feed>& feeds) {
  if (given == feeds.size()) return;
  std::vector<std::string> names;
  for (const PlanParts::Feed& feed : feeds) names.push_back(feed.target.name());
  throw InvalidArgumentError(fmt::format(
      "{} value{} given for {} feed{}{}{}. Give one value for each feed, in this order", given, given == 1 ? "" : "s",
      feeds.size(), feeds.size() == 1 ? "" : "s", names.empty() ? "" : ": ", fmt::join(names, ", ")));
}

void check_feed(const Output& target, const Tensor& value) {
  if (!value.defined()) {
    throw InvalidArgumentError(fmt::format("Cannot feed an undefined Tensor for tensor '{}', which is {}{}: {}",
                                           target.name(), dtype_name(target.dtype()), target.shape().to_string(),
                                           value.why_undefined()));
  }
  if (value.dtype() != target.dtype()) {
    throw InvalidArgumentError(fmt::format("Cannot feed a {} value for tensor '{}', which is {}",
                                           dtype_name(value.dtype()), target.name(), dtype_name(target.dtype())));
  }
  if (!value.shape().compatible_with(target.shape())) {
    throw InvalidArgumentError(fmt::format("Cannot feed value of shape {} for tensor '{}', which has shape {}",
                                           value.shape().to_string(), target.name(), target.shape().to_string()));
  }
}

void check_feeds(std::span<const Tensor* const> values, const std::vector<PlanParts::Feed>& feeds) {
  check_count(values.size(), feeds);
  for (size_t i = 0; i < values.size(); ++i) check_feed(feeds[i].target, *values[i]);
}

// All with one wait.
void fetch_from_devices(const PlanParts& parts, Frame& frame) {
  std::vector<at::Tensor*> fetched;
  for (const int slot : parts.fetched_from_devices) fetched.push_back(&frame.slots[static_cast<size_t>(slot)].tensor);
  if (parts.is_snapshot) {
    copy_snapshot_to_host(fetched);
  } else {
    copy_all_to_host(fetched);
  }
}

}  // namespace

std::vector<std::string> Plan::written_containers() const {
  std::set<std::string> containers;
  for (const VariableSlot* variable : parts_.written) containers.insert(variable->full_name().container);
  return {containers.begin(), containers.end()};
}

std::unique_ptr<Frame> Plan::take_frame() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!spare_frames_.empty()) {
      auto frame = std::move(spare_frames_.back());
      spare_frames_.pop_back();
      return frame;
    }
  }
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(parts_.is_constant.size());
  frame->buffers.resize(static_cast<size_t>(parts_.num_buffers));
  frame->draws.resize(parts_.random_streams.size());
  for (const auto& [slot, value] : parts_.constants) frame->slots[static_cast<size_t>(slot)] = value;
  return frame;
}

void Plan::give_back(std::unique_ptr<Frame> frame) {
  std::lock_guard<std::mutex> lock(mutex_);
  spare_frames_.push_back(std::move(frame));
}

WaitLimits Plan::waits_within(const WaitLimits& limits) const {
  return {limits.deadline, limits.cancellation != nullptr ? limits.cancellation : &session_->cancellation()};
}

void Plan::run(std::span<const Tensor* const> feeds, const WaitLimits& limits, std::vector<Tensor>* results,
               StepTrace* trace) {
  check_feeds(feeds, parts_.feeds);
  if (parts_.single_call && trace == nullptr) return call_single(feeds, limits, results);
  std::optional<OnDefaultStreams> streams;
  if (!parts_.devices.empty()) streams.emplace(session_->task().device_table());
  std::unique_ptr<Frame> frame = take_frame();
  frame->limits = waits_within(limits);
  try {
    bind_feeds(feeds, *frame);
    if (trace == nullptr) {
      execute(*frame, limits, Untraced());
    } else {
      execute(*frame, limits, Tracer(*trace));
    }
    collect(*frame, results);
  } catch (...) {
    clear_slots(*frame);
    give_back(std::move(frame));
    throw;
  }
  clear_slots(*frame);
  give_back(std::move(frame));
}

Prepared Plan::prepare(std::shared_ptr<Plan> plan, std::span<const Tensor* const> feeds, const PartRun& how) {
  return Prepared(std::move(plan), feeds, how);
}

std::unique_ptr<Frame> Plan::begin(std::span<const Tensor* const> feeds, const PartRun& how, bool is_step) {
  check_feeds(feeds, parts_.feeds);
  std::unique_ptr<Frame> frame = take_frame();
  frame->limits = waits_within({how.deadline, how.cancellation});
  frame->exchange = how.exchange;
  frame->place = how.place;
  take_draws(*frame, is_step);
  return frame;
}

void Plan::end(std::unique_ptr<Frame> frame, bool gives_draws_back) noexcept {
  give_draws_back(*frame, gives_draws_back);
  clear_slots(*frame);
  frame->exchange = nullptr;
  frame->place = nullptr;
  give_back(std::move(frame));
}

void Plan::let_in(const std::string& door, uint64_t step) const {
  session_->gate().let_in(door, step);
}

void Plan::call_single(std::span<const Tensor* const> feeds, const WaitLimits& limits, std::vector<Tensor>* results) {
  if (limits.cancellation != nullptr) limits.cancellation->check();
  const auto& [instruction, inputs_from, outputs_to, all_in_order] = *parts_.single_call;
  c10::SmallVector<Tensor, 4> inputs;
  for (int feed : inputs_from) {
    if (feed < 0) {
      inputs.emplace_back();
    } else {
      inputs.push_back(*feeds[static_cast<size_t>(feed)]);
    }
  }
  std::vector<Tensor> outputs;
  with_our_errors(instruction->op(), session_->task().device_table(), [&, call = instruction] {
    outputs = call->call({inputs.data(), inputs.size()}, waits_within(limits), *session_);
  });
  if (all_in_order && results->empty()) {
    *results = std::move(outputs);
    return;
  }
  for (int output : outputs_to) results->push_back(output < 0 ? Tensor() : outputs[static_cast<size_t>(output)]);
}

// All at the start: a step's are committed together, also those of what is computed after its writes.
void Plan::take_draws(Frame& frame, bool is_step) const {
  for (size_t i = 0; i < parts_.random_streams.size(); ++i) {
    RandomStream& stream = *parts_.random_streams[i];
    frame.draws[i] = is_step ? stream.take_for_step() : stream.take_for_other_run();
  }
}

// Of a step that failed: the next one computes with the same numbers, as a training does that goes on from a
// checkpoint.
void Plan::give_draws_back(const Frame& frame, bool is_step) const {
  if (!is_step) return;
  for (size_t i = 0; i < parts_.random_streams.size(); ++i) parts_.random_streams[i]->give_back(frame.draws[i]);
}

void Plan::bind_feeds(std::span<const Tensor* const> feeds, Frame& frame) const {
  size_t at = 0;
  bool same_sizes = true;
  const auto note_size = [&](int64_t size) {
    if (at == frame.feed_sizes.size()) frame.feed_sizes.push_back(-1);
    same_sizes &= std::exchange(frame.feed_sizes[at++], size) == size;
  };
  for (size_t i = 0; i < feeds.size(); ++i) {
    note_size(feeds[i]->shape().rank());
    for (int64_t size : feeds[i]->shape().dims()) note_size(size);
    const PlanParts::Feed& feed = parts_.feeds[i];
    frame.slots[static_cast<size_t>(feed.slot)] = Value::placed(feed.place, *feeds[i]);
  }
  if (!same_sizes) {
    for (at::Tensor& buffer : frame.buffers) buffer.reset();
  }
}

template <typename Runner>
void Plan::execute(Frame& frame, const WaitLimits& limits, const Runner& runner) {
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
  if (!parts_.only_host) below_autograd.emplace();
  take_draws(frame, writes_variables());
  try {
    execute_with_draws(frame, limits, runner);
  } catch (...) {
    give_draws_back(frame, writes_variables());
    throw;
  }
}

template <typename Runner>
void Plan::execute_with_draws(Frame& frame, const WaitLimits& limits, const Runner& runner) {
  size_t begin = 0;
  if (parts_.is_snapshot) {
    read_snapshot(frame, limits.deadline, /*door=*/nullptr, runner);
    begin = parts_.end_of_reads;
  }
  if (!writes_variables()) return execute_range(frame, begin, parts_.instructions.size(), limits, runner);
  execute_range(frame, begin, parts_.first_write, limits, runner);
  execute_writes(frame, limits, runner);
  execute_after_writes(frame, limits, runner);
}

// The step has taken place: a cancel ends only what waits.
template <typename Runner>
void Plan::execute_after_writes(Frame& frame, const WaitLimits& limits, const Runner& runner) {
  try {
    execute_range(frame, parts_.end_of_writes, parts_.instructions.size(), {.deadline = limits.deadline}, runner);
  } catch (const CancelledError& error) {
    if (limits.cancellation == nullptr || !limits.cancellation->cancelled()) throw;
    throw_error(Code::kCancelled, fmt::format("{}\nThe step was committed: its variables are written.", error.what()),
                {StepFate::kCommitted});
  }
}

// A snapshot of several tasks has one moment for all of them: nothing of it can be read again.
template <typename Runner>
void Plan::read_snapshot(Frame& frame, Seconds deadline, const std::string* door, const Runner& runner) {
  if (door != nullptr) return read_between_steps(frame, deadline, door, runner, /*moment=*/nullptr);
  SnapshotMoment moment;
  read_between_steps(frame, deadline, /*door=*/nullptr, runner, &moment);
  if (moment.complete()) return;
  for (size_t i = 0; i < parts_.end_of_reads; ++i) {
    frame.slots[static_cast<size_t>(parts_.instructions[i]->first_output())].reset();
  }
  read_between_steps(frame, deadline, /*door=*/nullptr, runner, /*moment=*/nullptr);
}

template <typename Runner>
void Plan::read_between_steps(Frame& frame, Seconds deadline, const std::string* door, const Runner& runner,
                              SnapshotMoment* moment) {
  const Seconds timeout = deadline.count() > 0 ? deadline - Clock::real().now() : StepGate::kLongestStep;
  std::exception_ptr error;
  const auto read = [&] {
    try {
      read_all(frame, runner, moment);
    } catch (...) {
      error = std::current_exception();
    }
  };
  if (door == nullptr) {
    session_->gate().snapshot(read, timeout);
  } else {
    session_->gate().take(*door, read, timeout);
  }
  if (error) std::rethrow_exception(error);
}

template <typename Runner>
void Plan::read_all(Frame& frame, const Runner& runner, SnapshotMoment* moment) const {
  session_->variables().check_consistent();
  std::optional<SnapshotMoment::Reading> reading;
  if (moment != nullptr) reading.emplace(*moment);
  for (size_t i = 0; i < parts_.end_of_reads; ++i) runner.run(*parts_.instructions[i], frame, *session_);
  if (moment != nullptr) moment->close();
}

template <typename Runner>
void Plan::execute_range(Frame& frame, size_t begin, size_t end, const WaitLimits& limits, const Runner& runner) {
  for (size_t i = begin; i < end; ++i) {
    const Instruction& instruction = *parts_.instructions[i];
    if (limits.deadline.count() > 0 && Clock::real().now() > limits.deadline) {
      throw DeadlineExceededError(fmt::format("the run timed out before {}", instruction.op().name()));
    }
    if (limits.cancellation != nullptr) limits.cancellation->check();
    with_our_errors(instruction.op(), session_->task().device_table(),
                    [&] { runner.run(instruction, frame, *session_); });
    for (int slot : instruction.releases()) frame.slots[static_cast<size_t>(slot)].reset();
  }
}

void Plan::check(size_t instruction, Frame& frame) const {
  const Instruction& write = *parts_.instructions[instruction];
  with_our_errors(write.op(), session_->task().device_table(), [&] { write.check(frame, *session_); });
}

template <typename Runner>
void Plan::execute_writes(Frame& frame, const WaitLimits& limits, const Runner& runner) {
  const SnapshotLimit::Entry inside(session_->gate(), session_->variables().snapshot_limit(), parts_.written,
                                    limits.deadline);
  if (limits.cancellation != nullptr) limits.cancellation->check();
  write_inside(frame, runner);
}

// All checks that can be made come before the first write; those of writes that follow others come just before these.
template <typename Runner>
void Plan::write_inside(Frame& frame, const Runner& runner) {
  for (size_t i : parts_.checks_first) check(i, frame);
  auto checked = parts_.checks_first.begin();
  for (size_t i = parts_.first_write; i < parts_.end_of_writes; ++i) {
    try {
      if (checked != parts_.checks_first.end() && *checked == i) {
        ++checked;
      } else {
        check(i, frame);
      }
      execute_range(frame, i, i + 1, /*limits=*/{}, runner);
    } catch (...) {
      mark_inconsistent(i);
      throw;
    }
  }
  for (size_t i = 0; i < parts_.random_streams.size(); ++i) parts_.random_streams[i]->commit(frame.draws[i]);
}

void Plan::mark_inconsistent(const std::string& why) {
  for (const VariableSlot* variable : parts_.written) session_->variables().mark_inconsistent(*variable, why);
}

// What was written before instruction `failed` is the middle of a step. So may be what it writes itself, if that is
// several variables; one that changes a single variable fails before it writes. Called where the error is caught.
void Plan::mark_inconsistent(size_t failed) {
  const std::string why = message_of(std::current_exception());
  for (size_t i = parts_.first_write; i <= failed; ++i) {
    const auto written = parts_.instructions[i]->written();
    if (i == failed && written.size() == 1) continue;
    for (const VariableSlot* variable : written) session_->variables().mark_inconsistent(*variable, why);
  }
}

template <typename Body>
void Plan::with_runner(const Frame& frame, const Tracer* tracer, const Body& body) const {
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
  if (!parts_.only_host) below_autograd.emplace();
  if (tracer != nullptr) {
    body(*tracer);
  } else if (frame.place != nullptr) {
    body(Placed());
  } else {
    body(Untraced());
  }
}

void Plan::compute_to_write(std::span<const Tensor* const> feeds, Frame& frame, const PartRun& how,
                            const Tracer* tracer) {
  frame.limits.cancellation->check();
  bind_feeds(feeds, frame);
  with_runner(frame, tracer, [&](const auto& runner) {
    const std::string* door = how.door.empty() ? nullptr : &how.door;
    if (parts_.is_snapshot) read_snapshot(frame, how.deadline, door, runner);
    const size_t begin = parts_.is_snapshot ? parts_.end_of_reads : 0;
    const size_t end = writes_variables() ? parts_.first_write : parts_.instructions.size();
    execute_range(frame, begin, end, {.deadline = how.deadline}, runner);
    for (size_t i : parts_.checks_first) check(i, frame);
  });
}

// Without the run's deadline: other tasks may have committed the step already.
void Plan::write(Frame& frame, uint64_t step, const Tracer* tracer) {
  with_runner(frame, tracer, [&](const auto& runner) {
    const SnapshotLimit::Entry inside(session_->gate(), session_->variables().snapshot_limit(), parts_.written,
                                      /*deadline=*/Seconds{0}, step);
    session_->cancellation().check_aborted();
    write_inside(frame, runner);
  });
}

void Plan::finish(Frame& frame, Seconds deadline, const Tracer* tracer, std::vector<Tensor>* results) {
  if (writes_variables()) {
    with_runner(frame, tracer, [&](const auto& runner) {
      execute_range(frame, parts_.end_of_writes, parts_.instructions.size(), {.deadline = deadline}, runner);
    });
  }
  collect(frame, results);
}

void Plan::collect(Frame& frame, std::vector<Tensor>* results) const {
  if (!parts_.fetched_from_devices.empty()) fetch_from_devices(parts_, frame);
  results->reserve(results->size() + parts_.fetches.size());
  for (const auto& [slot, may_move] : parts_.fetches) {
    if (slot < 0) {
      results->emplace_back();
      continue;
    }
    Value& value = frame.slots[static_cast<size_t>(slot)];
    results->push_back(may_move ? std::move(value).to_host() : std::as_const(value).to_host());
  }
}

void Plan::clear_slots(Frame& frame) const {
  for (size_t i = 0; i < frame.slots.size(); ++i) {
    if (!parts_.is_constant[i]) frame.slots[i].reset();
  }
  frame.stack.clear();
  frame.host_inputs.clear();
  frame.host_outputs.clear();
}

}  // namespace longhaul
