#include "longhaul/console/events/event_values.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cstring>
#include <utility>

#include "longhaul/console/text/plot.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostText = 80;  // bytes of a text that are kept

// Numbers of TensorFlow's types.proto.
constexpr int kFloatType = 1, kDoubleType = 2, kInt32Type = 3, kStringType = 7, kInt64Type = 9;

template <typename Number, typename List>
std::optional<double> single(const List& list, const std::string& content) {
  if (list.size() == 1) return static_cast<double>(list[0]);
  if (!list.empty() || content.size() != sizeof(Number)) return std::nullopt;
  Number number;
  std::memcpy(&number, content.data(), sizeof number);
  return static_cast<double>(number);
}

// The number of a tensor that is a single one, as TensorFlow 2 writes scalars.
std::optional<double> number_of(const proto::TensorProto& tensor) {
  for (const auto& dim : tensor.tensor_shape().dim()) {
    if (dim.size() != 1) return std::nullopt;
  }
  const std::string& content = tensor.tensor_content();
  switch (static_cast<int>(tensor.dtype())) {
    case kFloatType: return single<float>(tensor.float_val(), content);
    case kDoubleType: return single<double>(tensor.double_val(), content);
    case kInt32Type: return single<int32_t>(tensor.int_val(), content);
    case kInt64Type: return single<int64_t>(tensor.int64_val(), content);
    default: return std::nullopt;
  }
}

void describe_tensor(const proto::TensorProto& tensor, EventValue& value) {
  value.number = number_of(tensor);
  if (value.number) {
    value.kind = "scalar";
    value.text = number_text(*value.number);
  } else if (static_cast<int>(tensor.dtype()) == kStringType && tensor.string_val_size() > 0) {
    value.kind = "text";
    value.text = tensor.string_val(0).substr(0, kMostText);
  }
}

EventValue to_value(const proto::Summary::Value& summary, const proto::Event& event) {
  EventValue value{.tag = summary.tag(), .step = event.step(), .time = event.wall_time()};
  if (summary.has_simple_value()) {
    value.kind = "scalar";
    value.number = static_cast<double>(summary.simple_value());
    value.text = number_text(*value.number);
  } else if (summary.has_histo()) {
    value.kind = "histogram";
    value.text = fmt::format("{} values, {} to {}", number_text(summary.histo().num()),
                             number_text(summary.histo().min()), number_text(summary.histo().max()));
  } else if (summary.has_image()) {
    value.kind = "image";
    value.text = fmt::format("{} x {}", summary.image().width(), summary.image().height());
  } else if (summary.has_audio()) {
    value.kind = "audio";
    value.text = fmt::format("{} frames", summary.audio().length_frames());
  } else if (summary.has_tensor()) {
    describe_tensor(summary.tensor(), value);
  }
  return value;
}

void use_values(const proto::Event& event, const std::function<void(const EventValue&)>& use) {
  if (event.has_session_log() && event.session_log().status() == proto::SessionLog::START) {
    use({.kind = "start", .step = event.step(), .time = event.wall_time()});
  }
  for (const auto& summary : event.summary().value()) use(to_value(summary, event));
}

}  // namespace

EventFiles::EventFiles(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
  if (!files_.exists(path_)) throw NotFoundError(fmt::format("there is no directory and no event file {}", path_));
}

std::vector<std::string> EventFiles::paths() const {
  if (!files_.is_directory(path_)) return {path_};
  return event_files(path_, files_);
}

void EventFiles::read(const std::function<void(const EventValue&)>& use) {
  for (const std::string& path : paths()) read_file(path, use);
}

void EventFiles::read_file(const std::string& path, const std::function<void(const EventValue&)>& use) {
  const auto known = readers_.find(path);
  if (known != readers_.end() && known->second == nullptr) return;
  std::unique_ptr<EventReader>& reader = readers_[path];
  try {
    if (reader == nullptr) reader = std::make_unique<EventReader>(path, files_);
    while (const auto event = reader->next()) use_values(*event, use);
  } catch (const NotFoundError&) {
    reader.reset();
  } catch (const Error& error) {
    problems_.emplace_back(error.what());
    reader.reset();
  }
}

bool is_wanted_tag(const std::string& tag, const std::string& wanted) {
  return wanted.empty() || tag == wanted || ::fnmatch(wanted.c_str(), tag.c_str(), 0) == 0;
}

}  // namespace longhaul::console
