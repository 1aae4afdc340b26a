#include "longhaul/host/kernels/attr_or.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/host/parsing/csv.h"
#include "longhaul/host/parsing/decode_raw.h"
#include "longhaul/host/parsing/example.h"
#include "longhaul/host/parsing/sparse_tensor.h"

namespace longhaul {
namespace {

CsvFormat csv_format(const Operation& op) {
  return {.delimiter = attr_or<std::string>(op, "field_delim", ",")[0],
          .quotes = attr_or(op, "use_quote_delim", true),
          .na_value = attr_or<std::string>(op, "na_value", ""),
          .columns = attr_or<std::vector<int64_t>>(op, "select_cols", {})};
}

void csv(HostCall& call) {
  const bool has_keys = attr_or(call.op, "has_keys", false);
  const Tensor keys = has_keys ? call.inputs.back() : Tensor();
  call.results = decode_csv(call.inputs[0], keys, call.inputs.subspan(1, static_cast<size_t>(call.op.num_outputs())),
                            csv_format(call.op));
}

void raw(HostCall& call) {
  call.results.push_back(
      decode_raw(call.inputs[0], call.op.attr<DType>("out_type"), attr_or(call.op, "little_endian", true)));
}

void number(HostCall& call) {
  call.results.push_back(string_to_number(call.inputs[0], attr_or(call.op, "out_type", kFloat)));
}

const std::vector<DType>& sparse_types(const HostCall& call) {
  return call.op.attr<std::vector<DType>>("sparse_types");
}
const std::vector<DType>& dense_types(const HostCall& call) {
  return call.op.attr<std::vector<DType>>("Tdense");
}

// The indices of all sparse features, then their values, their shapes, and the dense features.
void put_results(HostCall& call, ParsedExamples parsed) {
  for (SparseTensor& feature : parsed.sparse) call.results.push_back(std::move(feature.indices));
  for (SparseTensor& feature : parsed.sparse) call.results.push_back(std::move(feature.values));
  for (SparseTensor& feature : parsed.sparse) call.results.push_back(std::move(feature.dense_shape));
  for (Tensor& feature : parsed.dense) call.results.push_back(std::move(feature));
}

// `sparse_key(i)`, `dense_key(i)`; the defaults are inputs from `first_default` on.
template <typename SparseKey, typename DenseKey>
ExampleSpec spec_of(const HostCall& call, const SparseKey& sparse_key, const DenseKey& dense_key,
                    size_t first_default) {
  const auto& shapes = call.op.attr<std::vector<Shape>>("dense_shapes");
  ExampleSpec spec;
  for (size_t i = 0; i < sparse_types(call).size(); ++i) spec.sparse.push_back({sparse_key(i), sparse_types(call)[i]});
  for (size_t i = 0; i < dense_types(call).size(); ++i) {
    spec.dense.push_back({dense_key(i), dense_types(call)[i], shapes[i], call.inputs[first_default + i]});
  }
  return spec;
}

void example(HostCall& call) {
  const size_t sparse = sparse_types(call).size(), dense = dense_types(call).size();
  const auto key = [&](size_t input) { return call.inputs[input].item<std::string>(); };
  const ExampleSpec spec = spec_of(
      call, [&](size_t i) { return key(2 + i); }, [&](size_t i) { return key(2 + sparse + i); }, 2 + sparse + dense);
  put_results(call, parse_examples(call.inputs[0], call.inputs[1], spec));
}

void single_example(HostCall& call) {
  using Keys = std::vector<std::string>;
  const auto &sparse_keys = call.op.attr<Keys>("sparse_keys"), &dense_keys = call.op.attr<Keys>("dense_keys");
  const ExampleSpec spec =
      spec_of(call, [&](size_t i) { return sparse_keys[i]; }, [&](size_t i) { return dense_keys[i]; }, 1);
  put_results(call, parse_single_example(call.inputs[0].item<std::string>(), spec));
}

SparseTensor sparse_input(const HostCall& call) {
  return {call.inputs[0], call.inputs[1], call.inputs[2]};
}

void write_sparse(HostCall& call) {
  call.results.push_back(serialize_sparse(sparse_input(call)));
}

void write_many_sparse(HostCall& call) {
  call.results.push_back(serialize_many_sparse(sparse_input(call)));
}

void read_many_sparse(HostCall& call) {
  SparseTensor sparse = deserialize_many_sparse(call.inputs[0], call.op.attr<DType>("dtype"));
  call.results = {std::move(sparse.indices), std::move(sparse.values), std::move(sparse.dense_shape)};
}

}  // namespace

HostKernelTable parsing_host_kernels() {
  return {
      {
          {"DecodeCSV", named_errors<csv>},
          {"DecodeRaw", named_errors<raw>},
          {"ParseExample", named_errors<example>},
          {"ParseSingleExample", named_errors<single_example>},
          {"StringToNumber", named_errors<number>},
          {"SerializeSparse", named_errors<write_sparse>},
          {"SerializeManySparse", named_errors<write_many_sparse>},
          {"DeserializeManySparse", named_errors<read_many_sparse>},
      },
      {},
  };
}

}  // namespace longhaul
