#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"
#include "longhaul/graph/queue_signature.h"

namespace longhaul::builtin {
namespace {

const std::vector<std::string>& reader_types() {
  static const auto* types = new std::vector<std::string>{
      "TextLineReaderV2", "TFRecordReaderV2", "FixedLengthRecordReaderV2", "WholeFileReaderV2", "IdentityReaderV2"};
  return *types;
}

void need_not_negative(const OperationSpec& spec, const std::string& name) {
  const int64_t* value = find_attr<int64_t>(spec, name);
  if (value != nullptr && *value < 0) refuse(spec, fmt::format("{} must not be negative, but is {}", name, *value));
}

void need_positive_if_given(const OperationSpec& spec, const std::string& name) {
  const int64_t* value = find_attr<int64_t>(spec, name);
  if (value != nullptr && *value <= 0) refuse(spec, fmt::format("{} must be positive, but is {}", name, *value));
}

OpInfo resolve_plain_reader(const OperationSpec& spec) {
  need_inputs(spec, 0);
  return resource_handle();
}

OpInfo resolve_text_line_reader(const OperationSpec& spec) {
  need_inputs(spec, 0);
  need_not_negative(spec, "skip_header_lines");
  need_positive_if_given(spec, "most_line_bytes");
  return resource_handle();
}

OpInfo resolve_record_reader(const OperationSpec& spec) {
  need_inputs(spec, 0);
  const std::string* compression = find_attr<std::string>(spec, "compression_type");
  if (compression != nullptr && !compression->empty() && *compression != "ZLIB" && *compression != "GZIP") {
    refuse(spec, fmt::format("compression_type must be empty, ZLIB or GZIP, not {}", *compression));
  }
  need_positive_if_given(spec, "most_record_bytes");
  return resource_handle();
}

OpInfo resolve_fixed_length_reader(const OperationSpec& spec) {
  need_inputs(spec, 0);
  if (need_attr<int64_t>(spec, "record_bytes") <= 0) refuse(spec, "record_bytes must be positive");
  for (const char* name : {"header_bytes", "footer_bytes", "hop_bytes"}) need_not_negative(spec, name);
  return resource_handle();
}

void need_reader_and_queue(const OperationSpec& spec) {
  need_resource(spec, 0, reader_types(), "a reader");
  need_resource(spec, 1, queue_types(), "a queue of file names");
  if (queue_signature(spec.inputs[1].op()).dtypes != std::vector<DType>{kString}) {
    refuse(spec, fmt::format("each element of {} must be one string, the name of a file", spec.inputs[1].op().name()));
  }
}

OpInfo resolve_read(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_reader_and_queue(spec);
  return {{{kString, {}}, {kString, {}}}, kTakesInput | kMayWait, 2};
}

// Without with_keys the keys are an empty vector.
OpInfo resolve_read_up_to(const OperationSpec& spec) {
  need_inputs(spec, 3);
  find_attr<bool>(spec, "with_keys");
  need_reader_and_queue(spec);
  need_dtype(spec, 2, kInt64);
  return {{{kString, {-1}}, {kString, {-1}}}, kTakesInput | kMayWait, 2};
}

template <DType dtype>
OpInfo resolve_look(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_resource(spec, 0, reader_types(), "a reader");
  return {{{dtype, {}}}, kMayWait, 1};
}

OpInfo resolve_restore_state(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_resource(spec, 0, reader_types(), "a reader");
  need_dtype(spec, 1, kString);
  if (!spec.inputs[1].shape().compatible_with({})) refuse(spec, "the state must be a scalar");
  return {{}, kSideEffect | kMayWait, 1};
}

OpInfo resolve_reset(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_resource(spec, 0, reader_types(), "a reader");
  return {{}, kSideEffect | kMayWait, 1};
}

OpInfo resolve_read_file(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kString);
  if (!spec.inputs[0].shape().compatible_with({})) refuse(spec, "the file name must be a scalar");
  return {{{kString, {}}}, kSideEffect};
}

OpInfo resolve_matching_files(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kString);
  return {{{kString, {-1}}}, kSideEffect};
}

}  // namespace

ResolverTable reader_ops() {
  return {
      {"TextLineReaderV2", resolve_text_line_reader},
      {"TFRecordReaderV2", resolve_record_reader},
      {"FixedLengthRecordReaderV2", resolve_fixed_length_reader},
      {"WholeFileReaderV2", resolve_plain_reader},
      {"IdentityReaderV2", resolve_plain_reader},
      {"ReaderReadV2", resolve_read},
      {"ReaderReadUpToV2", resolve_read_up_to},
      {"ReaderNumRecordsProducedV2", resolve_look<kInt64>},
      {"ReaderNumWorkUnitsCompletedV2", resolve_look<kInt64>},
      {"ReaderSerializeStateV2", resolve_look<kString>},
      {"ReaderRestoreStateV2", resolve_restore_state},
      {"ReaderResetV2", resolve_reset},
      {"ReadFile", resolve_read_file},
      {"MatchingFiles", resolve_matching_files},
  };
}

}  // namespace longhaul::builtin
