#include "longhaul/events/scalar_watch.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <atomic>
#include <bit>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Watches = std::vector<std::shared_ptr<const ScalarWatch>>;

struct Watched {
  std::string directory;
  std::weak_ptr<const ScalarWatch> watch;
};

// Those that have ended stand in the list until the next one is added.
struct AllWatches {
  std::atomic<size_t> count{0};
  Mutex mutex;
  std::vector<Watched> list GUARDED_BY(mutex);
};

AllWatches& all_watches() {
  static auto* const all = new AllWatches;  // outlives static objects that write events
  return *all;
}

Watches watches_of(const std::string& directory) {
  Watches found;
  AllWatches& all = all_watches();
  if (all.count.load(std::memory_order_relaxed) == 0) return found;
  MutexLock lock(all.mutex);
  for (const Watched& each : all.list) {
    if (each.directory != directory) continue;
    if (auto watch = each.watch.lock()) found.push_back(std::move(watch));
  }
  return found;
}

void tell(const Watches& watches, std::string_view tag, double value, int64_t step) {
  for (const auto& watch : watches) (*watch)(tag, value, step);
}

// A Summary.Value up to the limit of the stream. False: it cannot be read.
bool tell_value(CodedInputStream& in, const Watches& watches, int64_t step) {
  constexpr uint32_t kTag = proto::Summary::Value::kTagFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  constexpr uint32_t kSimple = proto::Summary::Value::kSimpleValueFieldNumber << 3 | WireFormatLite::WIRETYPE_FIXED32;
  std::string name;
  bool has_value = false;
  uint32_t bits = 0;
  while (uint32_t tag = in.ReadTag()) {
    if (tag == kSimple) has_value = true;
    if (tag == kTag      ? !WireFormatLite::ReadString(&in, &name)
        : tag == kSimple ? !in.ReadLittleEndian32(&bits)
                         : !WireFormatLite::SkipField(&in, tag)) {
      return false;
    }
  }
  if (has_value) tell(watches, name, std::bit_cast<float>(bits), step);
  return in.ConsumedEntireMessage();
}

}  // namespace

std::shared_ptr<const ScalarWatch> watch_scalars(std::string directory, ScalarWatch watch) {
  auto kept = std::make_shared<const ScalarWatch>(std::move(watch));
  AllWatches& all = all_watches();
  MutexLock lock(all.mutex);
  std::erase_if(all.list, [](const Watched& each) { return each.watch.expired(); });
  all.list.push_back({std::move(directory), kept});
  all.count = all.list.size();
  return kept;
}

void tell_scalar_watches(const std::string& directory, std::string_view tag, double value, int64_t step) {
  if (const Watches watches = watches_of(directory); !watches.empty()) tell(watches, tag, value, step);
}

void tell_scalar_watches(const std::string& directory, std::string_view serialized_summary, int64_t step) {
  const Watches watches = watches_of(directory);
  if (watches.empty()) return;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(serialized_summary.data()),
                      static_cast<int>(serialized_summary.size()));
  constexpr uint32_t kValue = proto::Summary::kValueFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  while (uint32_t tag = in.ReadTag()) {
    if (tag != kValue) {
      if (!WireFormatLite::SkipField(&in, tag)) return;
      continue;
    }
    int length;
    if (!in.ReadVarintSizeAsInt(&length) || length > in.BytesUntilLimit()) return;
    const auto limit = in.PushLimit(length);
    if (!tell_value(in, watches, step)) return;
    in.PopLimit(limit);
  }
}

void tell_scalar_watches(const std::string& directory, const proto::Summary& summary, int64_t step) {
  const Watches watches = watches_of(directory);
  if (watches.empty()) return;
  for (const auto& value : summary.value()) {
    if (value.value_case() == proto::Summary::Value::kSimpleValue)
      tell(watches, value.tag(), value.simple_value(), step);
  }
}

}  // namespace longhaul
