#include "longhaul/ops/input/reader_ops.h"

#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

Output handle(const Scope& scope, const char* type, std::string_view name, const std::string& shared_name,
              Attrs attrs = {}) {
  attrs["container"] = std::string();
  attrs["shared_name"] = shared_name;
  return scope.add(type, name, {}, std::move(attrs)).output();
}

// Attributes that TensorFlow has not are there only where they say something.
Attrs with_limit(Attrs attrs, const char* name, int64_t most_bytes) {
  if (most_bytes != 0) attrs[name] = most_bytes;
  return attrs;
}

Output look(const Scope& scope, const char* type, std::string_view name, const Output& reader) {
  return scope.add(type, name, {reader}).output();
}

Operation add_read_up_to(const Scope& scope, const Output& reader, const QueueBase& queue, int64_t num_records,
                         std::string_view name, Attrs attrs) {
  const Output count = constant(scope, num_records, std::string(name) + "/num_records");
  return scope.add("ReaderReadUpToV2", name, {reader, queue.handle(), count}, std::move(attrs));
}

}  // namespace

Output text_line_reader(const Scope& scope, const TextLineReaderOptions& options, std::string_view name) {
  return handle(
      scope, "TextLineReaderV2", name, options.shared_name,
      with_limit({{"skip_header_lines", options.skip_header_lines}}, "most_line_bytes", options.most_line_bytes));
}

Output tf_record_reader(const Scope& scope, const TFRecordReaderOptions& options, std::string_view name) {
  return handle(
      scope, "TFRecordReaderV2", name, options.shared_name,
      with_limit({{"compression_type", options.compression_type}}, "most_record_bytes", options.most_record_bytes));
}

Output fixed_length_record_reader(const Scope& scope, int64_t record_bytes,
                                  const FixedLengthRecordReaderOptions& options, std::string_view name) {
  return handle(scope, "FixedLengthRecordReaderV2", name, options.shared_name,
                {{"header_bytes", options.header_bytes},
                 {"record_bytes", record_bytes},
                 {"footer_bytes", options.footer_bytes},
                 {"hop_bytes", options.hop_bytes}});
}

Output whole_file_reader(const Scope& scope, const std::string& shared_name, std::string_view name) {
  return handle(scope, "WholeFileReaderV2", name, shared_name);
}

Output identity_reader(const Scope& scope, const std::string& shared_name, std::string_view name) {
  return handle(scope, "IdentityReaderV2", name, shared_name);
}

KeyValue read(const Scope& scope, const Output& reader, const QueueBase& queue, std::string_view name) {
  const Operation op = scope.add("ReaderReadV2", name, {reader, queue.handle()});
  return {op.output(0), op.output(1)};
}

KeyValue read_up_to(const Scope& scope, const Output& reader, const QueueBase& queue, int64_t num_records,
                    std::string_view name) {
  const Operation op = add_read_up_to(scope, reader, queue, num_records, name, {});
  return {op.output(0), op.output(1)};
}

Output read_values_up_to(const Scope& scope, const Output& reader, const QueueBase& queue, int64_t num_records,
                         std::string_view name) {
  return add_read_up_to(scope, reader, queue, num_records, name, {{"with_keys", false}}).output(1);
}

Output num_records_produced(const Scope& scope, const Output& reader, std::string_view name) {
  return look(scope, "ReaderNumRecordsProducedV2", name, reader);
}

Output num_work_units_completed(const Scope& scope, const Output& reader, std::string_view name) {
  return look(scope, "ReaderNumWorkUnitsCompletedV2", name, reader);
}

Output serialize_state(const Scope& scope, const Output& reader, std::string_view name) {
  return look(scope, "ReaderSerializeStateV2", name, reader);
}

Operation restore_state(const Scope& scope, const Output& reader, const Output& state, std::string_view name) {
  return scope.add("ReaderRestoreStateV2", name, {reader, state});
}

Operation reset(const Scope& scope, const Output& reader, std::string_view name) {
  return scope.add("ReaderResetV2", name, {reader});
}

Output read_file(const Scope& scope, const Output& filename, std::string_view name) {
  return scope.add("ReadFile", name, {filename}).output();
}

Output matching_files(const Scope& scope, const Output& pattern, std::string_view name) {
  return scope.add("MatchingFiles", name, {pattern}).output();
}

}  // namespace longhaul::ops
