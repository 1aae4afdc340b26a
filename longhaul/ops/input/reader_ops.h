#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/graph/scope.h"
#include "longhaul/ops/input/queue_ops.h"

namespace longhaul {

// `shared_name`: readers of one type with the same shared name are one reader, even in different graphs of a session.
// `most_record_bytes` limits the size of a record where a small or endless file could claim any size:
// ResourceExhaustedError. 0: 256 MiB; only then can TensorFlow read the graph.
struct TextLineReaderOptions {
  int64_t skip_header_lines = 0;  // of each file
  std::string shared_name{};
  int64_t most_line_bytes = 0;
};
struct TFRecordReaderOptions {
  std::string compression_type{};  // empty, "ZLIB" or "GZIP"
  std::string shared_name{};
  int64_t most_record_bytes = 0;  // of a record in a compressed file
};
struct FixedLengthRecordReaderOptions {
  int64_t header_bytes = 0;  // skipped at the start and at the end of each file
  int64_t footer_bytes = 0;
  int64_t hop_bytes = 0;  // from the start of one record to the next; 0: record_bytes
  std::string shared_name{};
};

namespace ops {

// Readers take file names from a queue (one string per element), and return the files' records. These functions return
// a handle for the operations below. Readers live in the session; their position is not checkpointed. Several runs may
// read concurrently; each record goes to one of them.

// Reads lines, without line breaks (\n or \r\n). Keys: "file:line", with lines counted from 1.
Output text_line_reader(const Scope& scope, const TextLineReaderOptions& options = {},
                        std::string_view name = "TextLineReader");
// Reads TFRecord files. Keys: "file:offset". DataLossError, with the file and the offset: a record is damaged or
// truncated.
Output tf_record_reader(const Scope& scope, const TFRecordReaderOptions& options = {},
                        std::string_view name = "TFRecordReader");
// Reads records of `record_bytes`. Keys: "file:number", counted from 0. DataLossError: the last record is incomplete.
Output fixed_length_record_reader(const Scope& scope, int64_t record_bytes,
                                  const FixedLengthRecordReaderOptions& options = {},
                                  std::string_view name = "FixedLengthRecordReader");
// Each file is one record; its key is its name.
Output whole_file_reader(const Scope& scope, const std::string& shared_name = {},
                         std::string_view name = "WholeFileReader");
// Returns the names themselves, as keys and as values.
Output identity_reader(const Scope& scope, const std::string& shared_name = {},
                       std::string_view name = "IdentityReader");

struct KeyValue {
  Output key, value;
};

// Reads the next record; key and value are scalars. OutOfRangeError: everything was read, and the queue is closed.
KeyValue read(const Scope& scope, const Output& reader, const QueueBase& queue, std::string_view name = "ReaderRead");
// Reads up to `num_records` (at least 1) of one file; keys and values are vectors. They are fewer at the end of a file,
// as in TensorFlow (files of 5 records, 4 at a time: 4, 1, 4, 1, ...), before an error, which the next call throws, and
// if they would exceed 256 MiB in total. A queue with enqueue_many, such as that of batch(), evens this out.
KeyValue read_up_to(const Scope& scope, const Output& reader, const QueueBase& queue, int64_t num_records,
                    std::string_view name = "ReaderReadUpTo");
// The same, but returns only the values, which is cheaper.
Output read_values_up_to(const Scope& scope, const Output& reader, const QueueBase& queue, int64_t num_records,
                         std::string_view name = "ReaderReadUpTo");

// Counts, scalar int64, since the reader was created, reset or restored. A work unit is a file that was read to its
// end.
Output num_records_produced(const Scope& scope, const Output& reader,
                            std::string_view name = "ReaderNumRecordsProduced");
Output num_work_units_completed(const Scope& scope, const Output& reader,
                                std::string_view name = "ReaderNumWorkUnitsCompleted");

// Save the reader's position as a string, and restore it. The queue is not included. InvalidArgumentError "Could not
// parse state for NAME": it is not such a string.
Output serialize_state(const Scope& scope, const Output& reader, std::string_view name = "ReaderSerializeState");
Operation restore_state(const Scope& scope, const Output& reader, const Output& state,
                        std::string_view name = "ReaderRestoreState");
// Returns the reader to its initial state: the rest of the file is dropped, and the counts are 0.
Operation reset(const Scope& scope, const Output& reader, std::string_view name = "ReaderReset");

// The file's contents. `filename`: a scalar string.
Output read_file(const Scope& scope, const Output& filename, std::string_view name = "ReadFile");
// The files that match the pattern, or one of several patterns, as a sorted vector, which may be empty. In the last
// part of a path, `*` stands for any characters except `/`, `?` for one, and `[a-z]` and `[^a-z]` for one of a set. A
// plain name matches itself if the file exists.
Output matching_files(const Scope& scope, const Output& pattern, std::string_view name = "MatchingFiles");

}  // namespace ops
}  // namespace longhaul
