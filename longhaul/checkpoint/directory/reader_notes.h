#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/lock/owner_record.h"

namespace longhaul {

// What the readers of a directory's checkpoints (evaluators, exporters) tell the Saver that deletes old ones there:
// that they are reading one, and which metric one has. Each note is a file of its own in the folder `.readers`
// (docs/formats/reader_notes.md), so that writers in any number of processes do not disturb each other, and a kill
// leaves a whole note or none.
inline constexpr const char* kReadersFolder = ".readers";

struct ReaderNote {
  std::string checkpoint{};        // its base name
  std::optional<double> metric{};  // absent: the note is a pin
  OwnerRecord reader{};            // who wrote it
  bool operator==(const ReaderNote&) const = default;
};

std::string format_reader_note(const ReaderNote& note);
// DataLossError: the text is no such note. `path` is for its message.
ReaderNote parse_reader_note(const std::string& text, const std::string& path);

struct CheckpointPinOptions {
  // How long the pin lasts for a Saver that cannot see this process, because it is on another machine or in another
  // container. For one that can, it lasts as long as the pin and the process exist. At most a day.
  Seconds lasts{3600};
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Keeps a checkpoint from being deleted by the Saver of another process while this one reads it. The Saver deletes it
// in its turn once the pin is gone. If the process dies, so does its pin.
//
//   const CheckpointPin pin("runs/net/model.ckpt-100");   // NotFoundError: it is already deleted, or about to be
//   evaluate(CheckpointReader("runs/net/model.ckpt-100"));
//
// This pin is for the time of reading; Saver::pin() is for good. Neither keeps a checkpoint from being replaced by
// another one of the same name, when a training goes back and saves the step again; what is read of both at once fails
// with DataLossError. One thread at a time.
class CheckpointPin {
 public:
  // NotFoundError: there is no such checkpoint, or its deletion has begun. InvalidArgumentError: `lasts` is not above
  // 0, or more than a day. Other errors of the file system: it cannot be pinned (this user must not write there).
  explicit CheckpointPin(const std::string& prefix, const CheckpointPinOptions& options = {});
  ~CheckpointPin();  // removes the pin
  CheckpointPin(const CheckpointPin&) = delete;
  CheckpointPin& operator=(const CheckpointPin&) = delete;

 private:
  FileSystem& files_;
  std::string path_;
};

// Gives a checkpoint its metric, from any process and at any time: at its next save, the Saver that manages the
// directory takes it over as if it had been passed as SaveOptions::metric, and keeps the checkpoint if it is one of the
// best (SaverOptions::best). Until then the checkpoint must not be deleted: hold a CheckpointPin. If several processes
// give one checkpoint a metric, the last one counts. As with SaveOptions::metric, NaN counts as no metric: nothing is
// written, and a warning says so.
//
// NotFoundError: there is no such checkpoint. Otherwise throws what the file system throws.
void write_checkpoint_metric(const std::string& prefix, double metric, FileSystem& files = FileSystem::real());

// The notes in a directory, for its Saver.
struct ReaderNotes {
  struct Metric {
    std::string checkpoint{};  // base name
    double value = 0;
    std::string path{};  // of the note, which the Saver removes once it has recorded the value
  };
  std::set<std::string> pinned;        // base names
  std::vector<Metric> metrics;         // the oldest first
  std::vector<std::string> worthless;  // paths: pins of processes that have ended, and old files that are no notes
};

// Never throws for what it finds: files that are no notes are ignored. A pin counts only while its process runs; if
// that cannot be seen, for as long as the pin says, by the times of files.
ReaderNotes read_reader_notes(FileSystem& files, const std::string& directory, Clock& clock);

// Removes these files of `.readers`. What cannot be removed stays.
void remove_reader_notes(FileSystem& files, const std::vector<std::string>& paths);

}  // namespace longhaul
