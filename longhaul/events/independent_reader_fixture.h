#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// What TensorBoard shows of the event files in a directory, read after docs/formats/event_file.md and record.md alone:
// none of the project's code is used, so that no mistake is made twice.
namespace longhaul::independent {

// A field of a message on the wire. Numbers of 4 and 8 bytes are in `number`, bit by bit.
struct Field {
  uint64_t id = 0, number = 0;
  std::string_view bytes;

  float as_float() const;
  double as_double() const;
};

std::vector<Field> fields_of(std::string_view message);

// The field with that number; an empty one if there is none.
Field field_of(std::string_view message, uint64_t id);

// The payloads up to the end, a part of a record, or a checksum that is wrong.
std::vector<std::string> records_of(const std::string& file);

// By name, which is the order of reading.
std::vector<std::string> files_in(const std::string& directory);

struct Event {
  int64_t step = 0;
  uint64_t kind = 0;  // the number of the field that is there: graph, summary, ...
  std::string contents;
};

std::vector<Event> events_in(const std::string& directory);

struct Point {
  int64_t step = 0;
  float number = 0;   // of a scalar
  std::string bytes;  // of the others: histo, image, audio, tensor
};

// What there is for a tag, and the plugin that shows it: the one that the metadata of its first value names or, without
// that, the one for values of its kind.
struct Series {
  std::string plugin, plugin_content;
  std::vector<Point> points;

  std::vector<int64_t> steps() const;
};
using Curves = std::map<std::string, Series>;

// How a reader recognises a restart. kStart: TensorBoard's reader in Python drops everything from a START's step on.
// kPerTag: its data server, which looks at no START, drops a tag's points from the step of a new one on.
enum class Rule { kStart, kPerTag };

class CurveReader {
 public:
  static Curves read(const std::string& directory, Rule rule);

 private:
  explicit CurveReader(Rule rule) : rule_(rule) {}

  void take(const Event& event);
  void take_value(int64_t step, std::string_view value);

  const Rule rule_;
  Curves curves_;
};

}  // namespace longhaul::independent
