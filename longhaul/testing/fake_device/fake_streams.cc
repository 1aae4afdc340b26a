#include "longhaul/testing/fake_device/fake_streams.h"

#include <c10/util/Exception.h>

namespace longhaul::fake_device {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr size_t kLongQueue = 1024;

thread_local c10::DeviceIndex current_device = 0;
thread_local std::map<c10::DeviceIndex, int64_t> current_streams;

c10::Stream stream_of(c10::DeviceIndex device, int64_t id) {
  return c10::Stream(c10::Stream::UNSAFE, {kType, device}, id);
}

}  // namespace

FakeStreams& FakeStreams::instance() {
  static auto* streams = new FakeStreams();
  return *streams;
}

c10::Device FakeStreams::device() const {
  return {kType, current_device};
}

c10::Device FakeStreams::exchange_device(c10::Device device) {
  return {kType, std::exchange(current_device, device.has_index() ? device.index() : current_device)};
}

c10::Stream FakeStreams::current(c10::Device device) const {
  const c10::DeviceIndex index = device.has_index() ? device.index() : current_device;
  const auto found = current_streams.find(index);
  return stream_of(index, found == current_streams.end() ? 0 : found->second);
}

c10::Stream FakeStreams::exchange(c10::Stream stream) {
  const c10::Stream before = current(stream.device());
  current_streams[stream.device_index()] = stream.id();
  return before;
}

c10::Stream FakeStreams::from_pool(c10::Device device) {
  const std::lock_guard lock(mutex_);
  return stream_of(device.has_index() ? device.index() : current_device, next_stream_++);
}

void FakeStreams::enqueue(c10::Stream stream, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  Queue& queue = this->queue(stream);
  queue.tasks.push_back(std::move(task));
  ++queue.enqueued;
  if (queue.tasks.size() > kLongQueue) run_one(queue);
}

FakeStreams::Moment FakeStreams::now(c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  return {stream, queue(stream).enqueued};
}

void FakeStreams::block(c10::Stream stream, const Moment& until) {
  enqueue(stream, [this, until] { run_until(queue(until.stream), until.position); });
}

bool FakeStreams::reached(const Moment& moment) {
  const std::lock_guard lock(mutex_);
  Queue& queue = this->queue(moment.stream);
  if (queue.done < moment.position) run_one(queue);
  return queue.done >= moment.position;
}

void FakeStreams::wait(const Moment& moment) {
  const std::lock_guard lock(mutex_);
  run_until(queue(moment.stream), moment.position);
  TORCH_CHECK(lost_.empty(), "fake device: ", lost_);
}

void FakeStreams::wait_for_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, queue] : queues_) run_until(queue, queue.enqueued);
  TORCH_CHECK(lost_.empty(), "fake device: ", lost_);
}

void FakeStreams::lose(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = reason;
}

void FakeStreams::find_again() {
  const std::lock_guard lock(mutex_);
  lost_.clear();
}

FakeStreams::Queue& FakeStreams::queue(c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  return queues_[{stream.device_index(), stream.id()}];
}

void FakeStreams::run_one(Queue& queue) {
  const std::function<void()> task = std::move(queue.tasks.front());
  queue.tasks.pop_front();
  try {
    task();
  } catch (const std::exception& error) {
    lose(error.what());
  }
  ++queue.done;
}

void FakeStreams::run_until(Queue& queue, int64_t position) {
  while (queue.done < position) run_one(queue);
}

}  // namespace longhaul::fake_device
