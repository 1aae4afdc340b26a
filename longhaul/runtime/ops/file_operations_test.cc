// Operations that touch files see those of their task, and no others: with RootedFiles they cannot leave the roots.
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <set>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/io/files/rooted_files.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What operations can do with a file of that name: the target of a run, by the operation's type.
using FileUses = std::map<std::string, std::function<Fetch(const Scope&, const std::string& path)>>;

Output path_constant(const Scope& scope, const std::string& value) {
  return ops::constant(scope, Tensor::scalar(value));
}

Fetch read_first(const Scope& scope, const Output& reader, const std::string& path, bool several = false) {
  const FIFOQueue names(scope, 1, {kString}, {.shapes = {Shape{}}});
  const Operation enqueue = names.enqueue(scope, {path_constant(scope, path)});
  const Scope after = scope.with_control_dependencies({enqueue});
  return several ? ops::read_up_to(after, reader, names, 1).value : ops::read(after, reader, names).value;
}

Operation save_restore(const Scope& scope, const char* type, const std::string& path) {
  const Output prefix = path_constant(scope, path), names = ops::constant(scope, Tensor::of<std::string>({"v"}));
  const Output slices = ops::constant(scope, Tensor::of<std::string>({""}));
  std::vector<Output> inputs{prefix, names, slices};
  if (std::string(type) == "SaveV2") inputs.push_back(ops::constant(scope, 1.0f));
  return scope.add(type, type, inputs, {{"dtypes", std::vector<DType>{kFloat}}});
}

FileUses uses_of_files() {
  return {
      {"TextLineReaderV2",
       [](auto& scope, auto& path) { return read_first(scope, ops::text_line_reader(scope), path); }},
      {"TFRecordReaderV2",
       [](auto& scope, auto& path) { return read_first(scope, ops::tf_record_reader(scope), path); }},
      {"FixedLengthRecordReaderV2",
       [](auto& scope, auto& path) { return read_first(scope, ops::fixed_length_record_reader(scope, 1), path); }},
      {"WholeFileReaderV2",
       [](auto& scope, auto& path) { return read_first(scope, ops::whole_file_reader(scope), path); }},
      {"ReaderReadV2", [](auto& scope, auto& path) { return read_first(scope, ops::text_line_reader(scope), path); }},
      {"ReaderReadUpToV2",
       [](auto& scope, auto& path) { return read_first(scope, ops::text_line_reader(scope), path, true); }},
      {"ReadFile", [](auto& scope, auto& path) { return ops::read_file(scope, path_constant(scope, path)); }},
      {"MatchingFiles",
       [](auto& scope, auto& path) { return ops::matching_files(scope, path_constant(scope, path + "*")); }},
      {"InitializeTableFromTextFileV2",
       [](auto& scope, auto& path) { return ops::index_table_from_file(scope, path).initializer(); }},
      {"SaveV2", [](auto& scope, auto& path) { return save_restore(scope, "SaveV2", path); }},
      {"RestoreV2", [](auto& scope, auto& path) { return save_restore(scope, "RestoreV2", path).output(); }},
      {"MergeV2Checkpoints",
       [](auto& scope, auto& path) {
         return scope.add("MergeV2Checkpoints", "merge",
                          {ops::constant(scope, Tensor::of<std::string>({path + "_part"})), path_constant(scope, path)},
                          {{"delete_old_dirs", false}});
       }},
  };
}

// Types of the kernels that have the task's files (tests/files_lint.sh) and leave them alone.
const std::set<std::string>& without_files() {
  static const auto* types = new std::set<std::string>{
      "IdentityReaderV2",
      "ReaderNumRecordsProducedV2",
      "ReaderNumWorkUnitsCompletedV2",
      "ReaderSerializeStateV2",
      "ReaderRestoreStateV2",
      "ReaderResetV2",
      "LookupTableFindV2",
      "LookupTableSizeV2",
      "LookupTableExportV2",
      "InitializeTableV2",
      "LookupTableInsertV2",
      "LookupTableRemoveV2",
      "LookupTableImportV2",
      "HashTableV2",
      "MutableHashTableV2",
      "StringJoin",
      "ShardedFilename",
  };
  return *types;
}

// A task whose files are below "root".
class FileOperations : public ::testing::Test {
 protected:
  FileOperations() {
    install_runtime();
    FileSystem::real().make_directories(inside(""));
    for (const std::string& path : {inside("file"), outside("file")}) {
      write_file_atomically(FileSystem::real(), path, "text\n");
      for (const char* suffix : {"", "_part"}) {
        BundleWriter writer(FileSystem::real(), path + suffix);
        writer.add("v", Tensor::scalar(1.0f));
        writer.finish();
      }
    }
  }

  std::string inside(const std::string& name) const { return directory_.file("root/" + name); }
  std::string outside(const std::string& name) const { return directory_.file(name); }

  void run(const FileUses::mapped_type& use, const std::string& path) {
    Graph graph;
    const Fetch fetch = use(Scope(graph), path);
    DirectSession(graph, {}, task_).run(fetch);
  }

  testing::TemporaryDirectory directory_;
  RootedFiles files_{FileSystem::real(), {directory_.file("root")}};
  const std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>(TaskOptions{.files = &files_});
};

TEST_F(FileOperations, EachIsRefusedOutsideOfTheRoots) {
  for (const auto& [type, use] : uses_of_files()) {
    EXPECT_THAT(error_of<PermissionDeniedError>([&] { run(use, outside("file")); }),
                AllOf(HasSubstr("file_roots"), HasSubstr(files_.roots()[0])))
        << type;
  }
}

TEST_F(FileOperations, EachWorksWithinThem) {
  for (const auto& [type, use] : uses_of_files()) {
    if (type == "TFRecordReaderV2") {
      EXPECT_THROW(run(use, inside("file")), DataLossError);  // it is none, but was opened
    } else {
      EXPECT_NO_THROW(run(use, inside("file"))) << type;
    }
  }
}

// A new operation that touches files cannot be forgotten.
TEST_F(FileOperations, AreAllThatHaveAKernelWithFiles) {
  std::set<std::string> types;
  for (const HostKernelTable& table : {reader_host_kernels(), lookup_host_kernels()}) {
    for (const auto& [type, kernel] : table.kernels) types.insert(type);
    for (const auto& [type, resource] : table.resources) types.insert(type);
  }
  for (const auto& [type, kernel] : save_restore_kernels()) types.insert(type);
  std::set<std::string> known = without_files();
  for (const auto& [type, use] : uses_of_files()) known.insert(type);
  EXPECT_EQ(types, known);
}

TEST_F(FileOperations, AtenCannotMapAFile) {
  Graph graph;
  const Scope root(graph);
  EXPECT_THAT(refusal_of([&] {
                root.add("aten::from_file", "map", {},
                         {{"filename", inside("file")}, {"shared", false}, {"size", int64_t{1}}, {"dtype", kUInt8}});
              }),
              AllOf(HasSubstr("opens a file by itself"), HasSubstr("read_file")));
}

// Texts that operators of this libtorch take: none but a filename is the name of a file.
TEST_F(FileOperations, AtenTakesNoOtherNamesOfFiles) {
  const std::set<std::string> harmless{
      "norm", "reduce", "rounding_mode", "driver", "interpolation", "UPLO", "ord", "p", "approximate", "side",
      "padding", "mode", "a", "b", "pad_mode", "indexing", "equation", "api_name", "s", "assert_msg", "filename",
      // of libtorch 2
      "padding_side", "activation", "algorithm",
      // names of dimensions
      "dim", "dim0", "dim1", "dim2", "dims", "start_dim", "end_dim", "out_dim", "outdim", "names", "order"};
  int with_filename = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle) continue;  // without a schema there is no call
    for (const c10::Argument& argument : handle->schema().arguments()) {
      if (argument.type()->annotation_str().find("str") == std::string::npos) continue;
      EXPECT_TRUE(harmless.contains(argument.name())) << toString(handle->schema());
      with_filename += argument.name() == "filename";
    }
  }
  EXPECT_GT(with_filename, 0);
}

}  // namespace
}  // namespace longhaul
