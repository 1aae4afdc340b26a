#include "longhaul/events/independent_reader_fixture.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace longhaul::independent {
namespace {

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }

  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw std::runtime_error("a message ends within a field");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t little_endian(int bytes) {
    uint64_t value = 0;
    for (int shift = 0; const char byte : take(static_cast<uint64_t>(bytes))) {
      value |= uint64_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("a varint without end");
  }

 private:
  std::string_view rest_;
};

uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

Event event_of(const std::string& payload) {
  Event event;
  for (const Field& field : fields_of(payload)) {
    if (field.id == 2) event.step = static_cast<int64_t>(field.number);
    if (field.id < 3 || field.id > 9) continue;
    event.kind = field.id;
    event.contents = field.bytes;
  }
  return event;
}

void describe(const std::string& plugin_of_kind, std::string_view plugin_data, Series* series) {
  series->plugin = plugin_of_kind.empty() ? std::string(field_of(plugin_data, 1).bytes) : plugin_of_kind;
  series->plugin_content = field_of(plugin_data, 2).bytes;
}

void drop_from(int64_t step, Series* series) {
  std::erase_if(series->points, [step](const Point& point) { return point.step >= step; });
}

}  // namespace

float Field::as_float() const {
  const auto bits = static_cast<uint32_t>(number);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double Field::as_double() const {
  double value;
  std::memcpy(&value, &number, sizeof value);
  return value;
}

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  Bytes bytes(message);
  while (!bytes.empty()) {
    const uint64_t key = bytes.varint();
    Field field{.id = key >> 3};
    switch (key & 7) {
      case 0: field.number = bytes.varint(); break;
      case 1: field.number = bytes.little_endian(8); break;
      case 2: field.bytes = bytes.take(bytes.varint()); break;
      case 5: field.number = bytes.little_endian(4); break;
      default: throw std::runtime_error("no such wire type");
    }
    fields.push_back(field);
  }
  return fields;
}

Field field_of(std::string_view message, uint64_t id) {
  for (const Field& field : fields_of(message)) {
    if (field.id == id) return field;
  }
  return {};
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> payloads;
  for (size_t at = 0; at + 12 <= file.size();) {
    const std::string_view length = std::string_view(file).substr(at, 8);
    const uint64_t size = Bytes(length).little_endian(8);
    if (masked_crc(length) != Bytes(std::string_view(file).substr(at + 8)).little_endian(4)) break;
    if (size > file.size() - at - 12 || file.size() - at - 12 - size < 4) break;
    const std::string payload = file.substr(at + 12, size);
    at += 12 + size;
    if (masked_crc(payload) != Bytes(std::string_view(file).substr(at)).little_endian(4)) break;
    at += 4;
    payloads.push_back(payload);
  }
  return payloads;
}

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<Event> events_in(const std::string& directory) {
  std::vector<Event> events;
  for (const std::string& path : files_in(directory)) {
    std::ifstream stream(path, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(stream), {}};
    for (const std::string& payload : records_of(file)) events.push_back(event_of(payload));
  }
  return events;
}

std::vector<int64_t> Series::steps() const {
  std::vector<int64_t> steps;
  for (const Point& point : points) steps.push_back(point.step);
  return steps;
}

Curves CurveReader::read(const std::string& directory, Rule rule) {
  CurveReader reader(rule);
  for (const Event& event : events_in(directory)) reader.take(event);
  return std::move(reader.curves_);
}

void CurveReader::take(const Event& event) {
  constexpr uint64_t kSummary = 5, kSessionLog = 7, kStart = 1;
  if (event.kind == kSessionLog && rule_ == Rule::kStart && field_of(event.contents, 1).number == kStart) {
    for (auto& [tag, series] : curves_) drop_from(event.step, &series);
  }
  if (event.kind != kSummary) return;
  for (const Field& value : fields_of(event.contents)) take_value(event.step, value.bytes);
}

void CurveReader::take_value(int64_t step, std::string_view value) {
  static const std::map<uint64_t, std::string> kPlugins = {
      {2, "scalars"}, {4, "images"}, {5, "histograms"}, {6, "audio"}, {8, ""}};
  for (const Field& field : fields_of(value)) {
    const auto kind = kPlugins.find(field.id);
    if (kind == kPlugins.end()) continue;
    const auto [found, is_first] = curves_.try_emplace(std::string(field_of(value, 1).bytes));
    Series& series = found->second;
    if (is_first) describe(kind->second, field_of(field_of(value, 9).bytes, 1).bytes, &series);
    if (rule_ == Rule::kPerTag) drop_from(step, &series);
    series.points.push_back({step, field.as_float(), std::string(field.bytes)});
  }
}

}  // namespace longhaul::independent
