#include "longhaul/cluster/wire/run_messages.h"

#include <fmt/format.h>

#include <functional>

#include "longhaul/base/error.h"
#include "longhaul/cluster/transport/message.h"
#include "longhaul/cluster/transport/tensor_message.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/import_check.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/tensor.pb.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

namespace wire = proto::master;

using NamedFields = proto::NamedTensorProto;
using TensorFieldNumbers = proto::TensorProto;

constexpr size_t kMostFeeds = 1 << 16;

void need(bool condition, const char* what) {
  if (!condition) throw InvalidArgumentError(fmt::format("{}: its message is damaged", what));
}

// Takes the rest of a field whose tag has been taken, and appends all of it to `out`.
bool copy_field(SliceReader& in, uint32_t field, uint32_t type, SliceWriter& out) {
  uint64_t number = 0;
  size_t length = type == WireReader::kFixed32 ? sizeof(uint32_t) : sizeof(uint64_t);
  std::string bytes;
  out.tag(field, type);
  if (type == WireReader::kVarint) {
    if (!in.take_varint(number)) return false;
    out.varint(number);
    return true;
  }
  if (type == WireReader::kBytes) {
    if (!in.take_length(length)) return false;
    out.varint(length);
  } else if (type != WireReader::kFixed32 && type != WireReader::kFixed64) {
    return false;
  }
  if (!in.take(bytes, length)) return false;
  out.copy(bytes);
  return true;
}

// Calls `take` for each message in field `feed` of a request, with its size, and returns the other fields.
std::string without_feeds(const Slices& request, uint32_t feed, const char* what,
                          const std::function<void(SliceReader&, size_t)>& take) {
  SliceReader in(request);
  SliceWriter rest;
  size_t feeds = 0;
  while (in.left() > 0) {
    uint32_t field, type;
    size_t size = 0;
    need(in.take_tag(field, type), what);
    if (field != feed || type != WireReader::kBytes) {
      need(copy_field(in, field, type, rest), what);
      continue;
    }
    if (++feeds > kMostFeeds) throw ResourceExhaustedError(fmt::format("{}: more than {} feeds", what, kMostFeeds));
    need(in.take_length(size), what);
    take(in, size);
  }
  return joined(rest.take());
}

// Whether read_tensor() takes it: the fields that TensorFlow's client sends, in their order, with the values as bytes.
bool is_plain(SliceReader in, size_t size) {
  const size_t end = in.left() - size;
  uint64_t dtype = 0;
  uint32_t last = 0;
  while (in.left() > end) {
    uint32_t field, type;
    if (!in.take_tag(field, type) || field < last || field > TensorFieldNumbers::kTensorContentFieldNumber)
      return false;
    last = field;
    const bool is_dtype = field == TensorFieldNumbers::kDtypeFieldNumber && type == WireReader::kVarint;
    if (!(is_dtype ? in.take_varint(dtype) : in.skip_field(type))) return false;
  }
  return last == TensorFieldNumbers::kTensorContentFieldNumber && dtype != kString;
}

// Takes the feeds of one request. What is not sent as bytes may be larger in memory: within the limit of what is
// parsed.
class FeedReader {
 public:
  explicit FeedReader(const Slices& request) : memory_left_(proto::most_parsed_size(total_bytes(request))) {}

  Tensor read(SliceReader& in, size_t size, const std::string& what) {
    if (is_plain(in, size)) return read_tensor(in, size, what);
    std::string bytes;
    proto::TensorProto message;
    if (!in.take(bytes, size) || !proto::parse_within_limits(bytes, &message))
      throw InvalidArgumentError(fmt::format("{}: its tensor is damaged or takes too much memory", what));
    try {
      take_memory(message);
      return from_proto(message);
    } catch (const Error& error) {
      throw_error(error.code(), fmt::format("{}: {}", what, error.what()));
    }
  }

 private:
  void take_memory(const proto::TensorProto& message) {
    const uint64_t bytes = constant_bytes(message);
    if (bytes > memory_left_)
      throw ResourceExhaustedError(
          "one value stands for more elements than the limit of a request's feeds allows: send them as bytes");
    memory_left_ -= bytes;
  }

  uint64_t memory_left_;
};

void take_named(SliceReader& in, size_t size, FeedReader& reader, RunStepCall& call) {
  constexpr char kWhat[] = "RunStep: a feed";
  const size_t end = in.left() - size;
  std::string name;
  Tensor value;
  while (in.left() > end) {
    uint32_t field, type;
    size_t length = 0;
    need(in.take_tag(field, type), kWhat);
    if (type != WireReader::kBytes) {
      need(in.skip_field(type), kWhat);
      continue;
    }
    need(in.take_length(length) && in.left() >= end + length, kWhat);
    if (field == NamedFields::kNameFieldNumber) {
      need(in.take(name, length), kWhat);
    } else if (field == NamedFields::kTensorFieldNumber) {
      value = reader.read(in, length, fmt::format("RunStep: feed {}", call.feeds.size()));
    } else {
      need(in.skip(length), kWhat);
    }
  }
  need(in.left() == end, kWhat);
  if (name.empty() || !value.defined()) throw InvalidArgumentError("RunStep: a feed has no name or no tensor");
  call.feeds.push_back(std::move(name));
  call.values.push_back(std::move(value));
}

void append_message(SliceWriter& out, uint32_t field, const Slices& message) {
  out.tag(field, WireReader::kBytes);
  out.varint(total_bytes(message));
  for (const Slice& slice : message) out.borrow(slice.bytes, slice.owner);
}

template <typename Response>
Slices finish(SliceWriter& out, const proto::RunMetadata* metadata) {
  if (metadata != nullptr) out.counted(Response::kMetadataFieldNumber, proto::serialize(*metadata));
  return out.take();
}

}  // namespace

RunStepCall read_run_step(const Slices& request) {
  RunStepCall call;
  FeedReader reader(request);
  const std::string rest = without_feeds(request, wire::RunStepRequest::kFeedFieldNumber, "RunStep",
                                         [&](SliceReader& in, size_t size) { take_named(in, size, reader, call); });
  parse_header(rest, "RunStep", call.message);
  return call;
}

RunCallableCall read_run_callable(const Slices& request) {
  RunCallableCall call;
  FeedReader reader(request);
  const auto take = [&](SliceReader& in, size_t size) {
    call.values.push_back(reader.read(in, size, fmt::format("RunCallable: feed {}", call.values.size())));
  };
  const std::string rest = without_feeds(request, wire::RunCallableRequest::kFeedFieldNumber, "RunCallable", take);
  parse_header(rest, "RunCallable", call.message);
  return call;
}

Slices write_run_step(const std::vector<std::string>& names, const std::vector<Tensor>& values,
                      const proto::RunMetadata* metadata) {
  SliceWriter out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!values[i].defined())
      throw InvalidArgumentError(fmt::format("{} has no value: {}", names[i], values[i].why_undefined()));
    SliceWriter named;
    named.counted(NamedFields::kNameFieldNumber, names[i]);
    write_tensor(named, NamedFields::kTensorFieldNumber, values[i]);
    append_message(out, wire::RunStepResponse::kTensorFieldNumber, named.take());
  }
  return finish<wire::RunStepResponse>(out, metadata);
}

Slices write_run_callable(const std::vector<Tensor>& values, const proto::RunMetadata* metadata) {
  SliceWriter out;
  for (const Tensor& value : values) write_tensor(out, wire::RunCallableResponse::kFetchFieldNumber, value);
  return finish<wire::RunCallableResponse>(out, metadata);
}

Slices to_slices(const google::protobuf::MessageLite& message) {
  SliceWriter out;
  out.copy(proto::serialize(message));
  return out.take();
}

}  // namespace longhaul
