#!/usr/bin/env bash
# files_lint.sh SOURCE_DIR: what operations do with files goes through their task's (TaskResources::files()), which may
# be rooted (io/files/rooted_files.h): the code that runs operations opens no file by itself, and names
# FileSystem::real() only as the default of a task. Kernels that have the task's files are in three files, whose
# operations longhaul/runtime/ops/file_operations_test.cc tries one by one.
set -euo pipefail
cd "$1"

find longhaul/host longhaul/runtime longhaul/ops longhaul/placement longhaul/cluster/{exchange,master,worker} \
  \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.cc' ! -name '*_fixture.*' -print 2>/dev/null | LC_ALL=C sort |
  xargs awk '
    BEGIN {
      with_files = "^longhaul/(host/kernels/(reader|lookup)|runtime/kernels/save_restore)_kernels\\.cc$"
      edge = "[^A-Za-z0-9_]"
    }
    function complain(why) {
      printf "%s:%d: %s: %s\n", FILENAME, FNR, why, $0
      failed = 1
    }
    {
      line = $0
      sub(/\/\/.*/, "", line)
      if (line ~ /^ *#/) next
      if (line ~ /FileSystem::real\(\)/ && line !~ /^  FileSystem\* files = &FileSystem::real\(\);/)
        complain("the files of the machine, not those of the task")
      if (line ~ ("(^|" edge ")(std::(basic_)?[io]?f(stream|ilebuf)|std::filesystem|(std::)?fopen|::open(at)?)(" edge \
          "|$)") && line !~ /"\/proc\//)
        complain("a file that is opened past the files of the task")
      if (FILENAME ~ /_kernels\.cc$/ && FILENAME !~ with_files && line ~ /(\.|->|resources\(\)\.)files(\(\)|,|\))/)
        complain("a kernel with files; name it in this lint, and its operations in file_operations_test.cc")
    }
    END { exit failed }'
