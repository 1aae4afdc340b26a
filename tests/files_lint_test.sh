#!/usr/bin/env bash
# files_lint_test.sh SOURCE_DIR: shows that files_lint.sh accepts a good tree and rejects each kind of bad line.
. "$1/tests/lint_fixture.sh"

# put PATH LINE: the tree is that one file.
put() {
  rm -rf "$tree/longhaul"
  mkdir -p "$tree"/longhaul/{host,runtime,ops,placement,cluster/{exchange,master,worker}} "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >"$tree/$1"
}
good() {
  put "$1" "$2"
  accepts "$1 with $2"
}
bad() {
  put "$1" "$2"
  rejects "$1 with $2" "$1:1: "
}

good longhaul/runtime/state/task.h '  FileSystem* files = &FileSystem::real();'
good longhaul/host/kernels/reader_kernels.cc '  read_file(call.files, path);'
good longhaul/runtime/plan/call.cc '  HostCall call{op, resources.files(), results};'
good longhaul/runtime/torch.cc '  std::ifstream file("/proc/cpuinfo");'
good longhaul/host/reader.cc '  work->source = open(files);  // not FileSystem::real()'
good longhaul/host/reader_test.cc '  read_file(FileSystem::real(), path);'
bad longhaul/host/reader.cc '  read_file(FileSystem::real(), path);'
bad longhaul/runtime/kernels/state_kernels.cc '  BundleReader reader(context.resources().files(), prefix);'
bad longhaul/host/kernels/array_kernels.cc '  read_file(call.files, path);'
bad longhaul/host/reader.cc '  std::ifstream file(path);'
bad longhaul/cluster/worker/shard.cc '  const int fd = ::open(path, O_RDONLY);'
bad longhaul/runtime/state/a.cc '  std::filesystem::remove(path);'
bad longhaul/ops/a.cc '  FILE* file = fopen(path, "r");'
echo "the lint accepts and rejects as it should"
