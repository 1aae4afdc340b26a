#include "longhaul/console/events/event_values.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cstring>
#include <new>
#include <utility>

#include "longhaul/console/text/plot.h"
#include "longhaul/events/event_reader.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostText = 80;  // bytes of a text in short
constexpr size_t kMostWhole = size_t{1} << 20;

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

std::string describe(const proto::HistogramProto& histogram) {
  return fmt::format("{} values, {} to {}", number_text(histogram.num()), number_text(histogram.min()),
                     number_text(histogram.max()));
}

// TensorFlow 2 writes images as texts: width, height, and a file for each image of a batch.
constexpr int kTextsBeforeImages = 2;

bool is_of_plugin(const proto::Summary::Value& summary, const char* plugin) {
  return summary.has_tensor() && summary.metadata().plugin_data().plugin_name() == plugin;
}

std::string cut(std::string text) {
  if (text.size() <= kMostWhole) return text;
  const size_t left_out = text.size() - kMostWhole;
  text.resize(kMostWhole);
  return text + fmt::format("\n({} bytes more)", left_out);
}

void describe_tensor(const proto::Summary::Value& summary, EventValue& value) {
  const proto::TensorProto& tensor = summary.tensor();
  value.number = number_of(tensor);
  if (!image_file(summary).empty()) {
    value.kind = "image";
    value.text =
        fmt::format("{} x {}", tensor.string_val(0).substr(0, kMostText), tensor.string_val(1).substr(0, kMostText));
  } else if (is_of_plugin(summary, "histograms")) {
    value.kind = "histogram";
    value.text = describe(histogram_of(summary));
    value.number.reset();
  } else if (value.number) {
    value.kind = "scalar";
    value.text = number_text(*value.number);
  } else if (static_cast<int>(tensor.dtype()) == kStringType && tensor.string_val_size() > 0) {
    value.kind = "text";
    value.text = tensor.string_val(0).substr(0, kMostText);
    if (std::string whole = whole_text(summary); whole != value.text) value.whole = cut(std::move(whole));
  }
}

void use_values(const proto::Event& event, const EventFiles::UseValue& use) {
  if (event.has_session_log() && event.session_log().status() == proto::SessionLog::START) {
    use({.kind = "start", .step = event.step(), .time = event.wall_time()});
  }
  for (const auto& summary : event.summary().value()) use(value_of(summary, event));
}

}  // namespace

EventValue value_of(const proto::Summary::Value& summary, const proto::Event& event) {
  EventValue value{.tag = summary.tag(), .step = event.step(), .time = event.wall_time()};
  if (summary.has_simple_value()) {
    value.kind = "scalar";
    value.number = static_cast<double>(summary.simple_value());
    value.text = number_text(*value.number);
  } else if (summary.has_histo()) {
    value.kind = "histogram";
    value.text = describe(summary.histo());
  } else if (summary.has_image()) {
    value.kind = "image";
    value.text = fmt::format("{} x {}", summary.image().width(), summary.image().height());
  } else if (summary.has_audio()) {
    value.kind = "audio";
    value.text = fmt::format("{} frames", summary.audio().length_frames());
  } else if (summary.has_tensor()) {
    describe_tensor(summary, value);
  }
  return value;
}

std::string whole_text(const proto::Summary::Value& summary) {
  std::string text;
  for (const std::string& line : summary.tensor().string_val()) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::string image_file(const proto::Summary::Value& summary) {
  if (summary.has_image()) return summary.image().encoded_image_string();
  const bool has_image = is_of_plugin(summary, "images") && summary.tensor().string_val_size() > kTextsBeforeImages;
  return has_image ? summary.tensor().string_val(kTextsBeforeImages) : "";
}

// TensorFlow 2 writes a row for each bucket: its limits, and how many values are in it.
proto::HistogramProto histogram_of(const proto::Summary::Value& summary) {
  if (!is_of_plugin(summary, "histograms")) return summary.histo();
  proto::HistogramProto histogram;
  const std::string& content = summary.tensor().tensor_content();
  constexpr size_t kRow = 3 * sizeof(double);
  if (static_cast<int>(summary.tensor().dtype()) != kDoubleType) return histogram;
  for (size_t at = 0; at + kRow <= content.size(); at += kRow) {
    double left = 0, right = 0, count = 0;
    std::memcpy(&left, content.data() + at, sizeof left);
    std::memcpy(&right, content.data() + at + sizeof left, sizeof right);
    std::memcpy(&count, content.data() + at + 2 * sizeof left, sizeof count);
    if (at == 0) histogram.set_min(left);
    histogram.set_max(right);
    histogram.set_num(histogram.num() + count);
    histogram.add_bucket_limit(right);
    histogram.add_bucket(count);
  }
  return histogram;
}

EventFiles::EventFiles(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
  if (!files_.exists(path_)) throw NotFoundError(fmt::format("there is no directory and no event file {}", path_));
}

std::vector<std::string> EventFiles::paths() const {
  if (!files_.is_directory(path_)) return {path_};
  return event_files(path_, files_);
}

void EventFiles::read(const UseValue& use) {
  for (const std::string& path : paths()) read_file(path, use);
}

void EventFiles::read_file(const std::string& path, const UseValue& use) {
  File& file = known_[path];
  if (file.is_over) return;
  try {
    read_on(path, file, use);
  } catch (const NotFoundError&) {
    file.is_over = true;
  } catch (const Error& error) {
    problems_.emplace_back(error.what());
    file.is_over = true;
  } catch (const std::bad_alloc&) {
    problems_.push_back(fmt::format("{}: memory is too small for its event at {}", path, file.offset));
    file.is_over = true;
  }
}

// A write within the same tick of the file system's clock leaves the time as it was.
void EventFiles::read_on(const std::string& path, File& file, const UseValue& use) {
  const double modified_at = files_.modified_at(path);
  if (file.is_quiet && modified_at == file.modified_at) return;
  EventReader reader(path, files_, file.offset);
  bool is_new = false;
  while (const auto event = reader.next()) {
    file.offset = reader.offset();
    is_new = true;
    use_values(*event, use);
  }
  file.is_quiet = !is_new && modified_at == file.modified_at;
  file.modified_at = modified_at;
}

bool is_wanted_tag(const std::string& tag, const std::string& wanted) {
  return wanted.empty() || tag == wanted || ::fnmatch(wanted.c_str(), tag.c_str(), 0) == 0;
}

}  // namespace longhaul::console
