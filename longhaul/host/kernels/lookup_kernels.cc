#include <fmt/format.h>

#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/tables/lookup_table.h"
#include "longhaul/host/tables/vocabulary_file.h"

namespace longhaul {
namespace {

template <typename Table>
std::shared_ptr<Resource> make_table(const Operation& handle) {
  return std::make_shared<Table>(handle.attr<DType>("key_dtype"), handle.attr<DType>("value_dtype"));
}

// The table, which another handle of the same shared_name may have made with other dtypes.
template <typename Table>
Table& table_of(const HostCall& call) {
  Table& table = call.resource<Table>();
  const Operation handle = call.op.inputs()[0].op();
  const DType keys = handle.attr<DType>("key_dtype"), values = handle.attr<DType>("value_dtype");
  if (table.key_dtype() != keys || table.value_dtype() != values) {
    throw InvalidArgumentError(fmt::format(
        "{} declares a table from {} to {}, but the existing table of the same shared_name is from {} to {}",
        handle.name(), dtype_name(keys), dtype_name(values), dtype_name(table.key_dtype()),
        dtype_name(table.value_dtype())));
  }
  return table;
}

void look_up(HostCall& call) {
  call.results.push_back(table_of<LookupTable>(call).find(call.inputs[1], call.inputs[2]));
}

void table_size(HostCall& call) {
  call.results.push_back(Tensor::scalar(table_of<LookupTable>(call).size()));
}

void export_all(HostCall& call) {
  auto [keys, values] = table_of<LookupTable>(call).sorted();
  call.results = {std::move(keys), std::move(values)};
}

void initialize(HostCall& call) {
  table_of<ConstantTable>(call).initialize(call.inputs[1], call.inputs[2]);
}

void initialize_from_file(HostCall& call) {
  ConstantTable& table = table_of<ConstantTable>(call);
  const VocabularyFormat format{.key_index = call.op.attr<int64_t>("key_index"),
                                .value_index = call.op.attr<int64_t>("value_index"),
                                .vocab_size = call.op.attr<int64_t>("vocab_size"),
                                .delimiter = call.op.attr<std::string>("delimiter")[0]};
  const auto& path = call.inputs[1].item<std::string>();
  const auto [keys, values] = read_vocabulary(call.files, path, table.key_dtype(), table.value_dtype(), format);
  table.initialize(keys, values, path);
}

void insert(HostCall& call) {
  table_of<MutableTable>(call).insert(call.inputs[1], call.inputs[2]);
}

void remove(HostCall& call) {
  table_of<MutableTable>(call).remove(call.inputs[1]);
}

void import(HostCall& call) {
  table_of<MutableTable>(call).import(call.inputs[1], call.inputs[2]);
}

template <HostKernel body>
void named(HostCall& call) {
  try {
    body(call);
  } catch (const Error& error) {
    throw_error(error.code(), call.op.name() + ": " + error.what());
  }
}

}  // namespace

HostKernelTable lookup_host_kernels() {
  return {
      {
          {"LookupTableFindV2", named<look_up>},
          {"LookupTableSizeV2", named<table_size>},
          {"LookupTableExportV2", named<export_all>},
          {"InitializeTableV2", named<initialize>},
          {"InitializeTableFromTextFileV2", named<initialize_from_file>},
          {"LookupTableInsertV2", named<insert>},
          {"LookupTableRemoveV2", named<remove>},
          {"LookupTableImportV2", named<import>},
      },
      {
          {"HashTableV2", make_table<ConstantTable>},
          {"MutableHashTableV2", make_table<MutableTable>},
      },
  };
}

}  // namespace longhaul
