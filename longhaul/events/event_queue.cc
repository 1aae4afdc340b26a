#include "longhaul/events/event_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "longhaul/io/records/record.h"

namespace longhaul {

namespace {

constexpr size_t kLargeBytes = 256 * 1024;  // worth a write
constexpr size_t kMostEvents = size_t{1} << 22;

// Whether `a` was drawn before `b`, neither being far from the other.
bool is_before(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a - b) < 0;
}

size_t record_bytes_at(const std::string& records, size_t offset) {
  uint64_t payload;
  std::memcpy(&payload, records.data() + offset, sizeof(payload));
  return kRecordHeaderBytes + payload + kRecordFooterBytes;
}

}  // namespace

void EventQueue::Records::clear() {
  bytes.clear();
  tickets.clear();
  next = offset = 0;
}

EventQueue::EventQueue(size_t max_events, size_t max_bytes)
    : max_events_(std::clamp<size_t>(max_events, 1, kMostEvents)),
      max_bytes_(max_bytes),
      large_events_((max_events_ + 1) / 2),
      large_bytes_(std::min(kLargeBytes, max_bytes / 2)) {}

EventQueue::Shard& EventQueue::shard_of_this_thread() {
  static std::atomic<size_t> threads = 0;
  thread_local const size_t number = threads++;
  return shards_[number % kShards];
}

EventQueue::Result EventQueue::add(std::string_view record) {
  Shard& shard = shard_of_this_thread();
  MutexLock lock(shard.mutex);
  if (!is_open()) return Result::kClosed;
  if (is_full_) return Result::kFull;
  const Ticket size = kOneEvent + record.size();
  const Ticket ticket = issued_.fetch_add(size);
  shard.records.bytes.append(record);
  shard.records.tickets.push_back(ticket);

  const Ticket before = ticket - taken_, after = before + size;
  if (reaches(after, max_events_, max_bytes_)) is_full_ = true;
  const bool wake = before == 0 || (!is_large(before) && is_large(after));
  return wake ? Result::kAddedWake : Result::kAdded;
}

bool EventQueue::reaches(Ticket queued, size_t events, size_t bytes) {
  return queued >> kEventShift >= events || (queued & (kOneEvent - 1)) >= bytes;
}

size_t EventQueue::take(std::string& records) {
  take_shards();
  size_t events = 0;
  for (const auto& taken : taking_) events += taken.tickets.size();
  merge(records);
  for (auto& taken : taking_) taken.clear();
  return events;
}

// All shards at one moment, so that nothing is taken before what was added before it.
void EventQueue::take_shards() NO_THREAD_SAFETY_ANALYSIS {
  for (auto& shard : shards_) shard.mutex.lock();
  for (size_t i = 0; i < kShards; ++i) std::swap(shards_[i].records, taking_[i]);
  taken_ = issued_.load();
  is_full_ = false;
  for (auto& shard : shards_) shard.mutex.unlock();
}

void EventQueue::merge(std::string& records) {
  if (records.empty() && std::count_if(taking_.begin(), taking_.end(), [](auto& r) { return !r.is_done(); }) == 1) {
    std::swap(records, earliest()->bytes);
    return;
  }
  while (Records* from = earliest()) copy_run(*from, records);
}

EventQueue::Records* EventQueue::earliest() {
  Records* found = nullptr;
  for (auto& taken : taking_)
    if (!taken.is_done() && (!found || is_before(taken.tickets[taken.next], found->tickets[found->next])))
      found = &taken;
  return found;
}

// The records that come before all that the other shards have.
void EventQueue::copy_run(Records& from, std::string& records) {
  const Records* other = nullptr;
  for (const auto& taken : taking_)
    if (&taken != &from && !taken.is_done() &&
        (!other || is_before(taken.tickets[taken.next], other->tickets[other->next])))
      other = &taken;
  const size_t begin = from.offset;
  do {
    from.offset += record_bytes_at(from.bytes, from.offset);
    ++from.next;
  } while (!from.is_done() && (!other || is_before(from.tickets[from.next], other->tickets[other->next])));
  records.append(from.bytes, begin, from.offset - begin);
}

}  // namespace longhaul
