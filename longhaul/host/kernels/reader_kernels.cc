#include <algorithm>

#include "longhaul/host/kernels/attr_or.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/host/readers/file_pattern.h"
#include "longhaul/host/readers/reader.h"

namespace longhaul {
namespace {

std::shared_ptr<Resource> make_text_line_reader(const Operation& op) {
  return std::make_shared<Reader>(op.name(), text_lines(attr_or<int64_t>(op, "skip_header_lines", 0),
                                                        attr_or(op, "most_line_bytes", kMostRecordBytes)));
}

std::shared_ptr<Resource> make_record_reader(const Operation& op) {
  return std::make_shared<Reader>(op.name(),
                                  tf_records(compression_of(attr_or<std::string>(op, "compression_type", "")),
                                             attr_or(op, "most_record_bytes", kMostRecordBytes)));
}

std::shared_ptr<Resource> make_fixed_length_reader(const Operation& op) {
  const FixedLengthFormat format{.record_bytes = op.attr<int64_t>("record_bytes"),
                                 .header_bytes = attr_or<int64_t>(op, "header_bytes", 0),
                                 .footer_bytes = attr_or<int64_t>(op, "footer_bytes", 0),
                                 .hop_bytes = attr_or<int64_t>(op, "hop_bytes", 0)};
  return std::make_shared<Reader>(op.name(), fixed_length_records(format));
}

std::shared_ptr<Resource> make_whole_file_reader(const Operation& op) {
  return std::make_shared<Reader>(op.name(), whole_files());
}

std::shared_ptr<Resource> make_identity_reader(const Operation& op) {
  return std::make_shared<Reader>(op.name(), names_alone());
}

Reader::Records read_records(const HostCall& call, int64_t limit, Reader::Keys keys) {
  Queue& queue = call.resource<Queue>(1);
  const auto next_file = [&] {
    const QueueElement element = queue.dequeue(call.limits);
    if (element.size() != 1) throw InvalidArgumentError("each element of " + queue.name() + " must be a single string");
    return element[0].item<std::string>();
  };
  return call.resource<Reader>().read(limit, next_file, call.files, call.limits, keys);
}

void read(HostCall& call) {
  Reader::Records records = read_records(call, 1, Reader::Keys::kWanted);
  call.results.push_back(Tensor::scalar(std::move(records.keys[0])));
  call.results.push_back(Tensor::scalar(std::move(records.values[0])));
}

// The vector's strings become the tensor's.
Tensor adopt(std::vector<std::string> strings) {
  const auto owner = std::make_shared<std::vector<std::string>>(std::move(strings));
  return Tensor::wrap(kString, {static_cast<int64_t>(owner->size())}, owner->data(), owner);
}

void read_up_to(HostCall& call) {
  const auto keys = attr_or(call.op, "with_keys", true) ? Reader::Keys::kWanted : Reader::Keys::kLeftOut;
  Reader::Records records = read_records(call, call.inputs[2].item<int64_t>(), keys);
  call.results.push_back(adopt(std::move(records.keys)));
  call.results.push_back(adopt(std::move(records.values)));
}

void num_records_produced(HostCall& call) {
  call.results.push_back(Tensor::scalar(call.resource<Reader>().num_records_produced()));
}

void num_work_units_completed(HostCall& call) {
  call.results.push_back(Tensor::scalar(call.resource<Reader>().num_work_units_completed()));
}

void serialize_state(HostCall& call) {
  call.results.push_back(Tensor::scalar(call.resource<Reader>().serialize_state(call.limits)));
}

void restore_state(HostCall& call) {
  call.resource<Reader>().restore_state(call.inputs[1].item<std::string>(), call.limits);
}

void reset(HostCall& call) {
  call.resource<Reader>().reset(call.limits);
}

void read_whole_file(HostCall& call) {
  call.results.push_back(Tensor::scalar(read_file(call.files, call.inputs[0].item<std::string>())));
}

void match_files(HostCall& call) {
  std::vector<std::string> found;
  for (const std::string& pattern : call.inputs[0].flat<std::string>()) {
    const std::vector<std::string> more = matching_files(call.files, pattern);
    found.insert(found.end(), more.begin(), more.end());
  }
  std::sort(found.begin(), found.end());
  call.results.push_back(adopt(std::move(found)));
}

}  // namespace

HostKernelTable reader_host_kernels() {
  return {
      {
          {"ReaderReadV2", named_errors<read>},
          {"ReaderReadUpToV2", named_errors<read_up_to>},
          {"ReaderNumRecordsProducedV2", named_errors<num_records_produced>},
          {"ReaderNumWorkUnitsCompletedV2", named_errors<num_work_units_completed>},
          {"ReaderSerializeStateV2", named_errors<serialize_state>},
          {"ReaderRestoreStateV2", named_errors<restore_state>},
          {"ReaderResetV2", named_errors<reset>},
          {"ReadFile", named_errors<read_whole_file>},
          {"MatchingFiles", named_errors<match_files>},
      },
      {
          {"TextLineReaderV2", make_text_line_reader},
          {"TFRecordReaderV2", make_record_reader},
          {"FixedLengthRecordReaderV2", make_fixed_length_reader},
          {"WholeFileReaderV2", make_whole_file_reader},
          {"IdentityReaderV2", make_identity_reader},
      },
  };
}

}  // namespace longhaul
