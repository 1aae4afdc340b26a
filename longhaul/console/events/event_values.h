#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul::console {

// A value of a summary, or a restart.
struct EventValue {
  std::string tag{};
  const char* kind = "tensor";  // scalar, histogram, image, audio, text, tensor; "start": a training began at `step`
  int64_t step = 0;
  double time = 0;                 // seconds since 1970
  std::optional<double> number{};  // of a scalar
  std::string text{};              // in short, for people
  std::string whole{};             // of a text that is longer, such as the stacks of a hang: up to a mebibyte of it
};

// What a value of an event is, in short.
EventValue value_of(const proto::Summary::Value& summary, const proto::Event& event);

// All strings of a value that is a text, a line each.
std::string whole_text(const proto::Summary::Value& summary);

// The PNG or JPEG file of a value that is an image, the first of several; empty: it is none.
std::string image_file(const proto::Summary::Value& summary);

// Of a value that is a histogram; an empty one: it is none.
proto::HistogramProto histogram_of(const proto::Summary::Value& summary);

// The values of event files that may still grow, in the order of the files. No file stays open between two looks: a
// training that was restarted for weeks has many, all but the last of which are over. One thread at a time.
class EventFiles {
 public:
  using UseValue = std::function<void(const EventValue&)>;

  // `path`: an event file, or a directory with some. NotFoundError: there is nothing of that name.
  EventFiles(FileSystem& files, std::string path);

  // Calls use() with what was written since the last call, in new files too. A file that cannot be read on is left, and
  // becomes a problem; one that is deleted meanwhile does not.
  void read(const UseValue& use);

  size_t count() const { return known_.size(); }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct File {
    uint64_t offset = 0;      // of the next event
    double modified_at = -1;  // before it was read last
    bool is_quiet = false;    // it was read to its end twice since then, so that nothing can have been missed
    bool is_over = false;     // it is damaged or gone, and not read any more
  };

  std::vector<std::string> paths() const;
  void read_file(const std::string& path, const UseValue& use);
  void read_on(const std::string& path, File& file, const UseValue& use);

  FileSystem& files_;
  const std::string path_;
  std::map<std::string, File> known_;
  std::vector<std::string> problems_;
};

// Whether a tag is meant by a name or a pattern of the shell's ("train/*"); empty: each is.
bool is_wanted_tag(const std::string& tag, const std::string& wanted);

}  // namespace longhaul::console
