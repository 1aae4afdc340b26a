#!/usr/bin/env bash
# descriptor_lint.sh SOURCE_DIR: what makes a descriptor in longhaul/ stands behind an AboveStdio (base/above_stdio.h),
# which is on one of the three lines before it, so that none is ever below 3. Tests and fixtures may open what they
# like.
set -euo pipefail
cd "$1"

find longhaul \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.cc' ! -name '*_fixture.*' \
  ! -path longhaul/base/above_stdio.cc \
  -print | LC_ALL=C sort |
  xargs awk '
    BEGIN {
      # What makes descriptors in the manual pages of section 2, and what in section 3 has them made by it; for as long
      # as a call lasts, too: what another thread prints meanwhile must not go there. What only reads and has closed its
      # file when it returns is left out, such as localtime_r(), sysconf(), remove_all() and std::random_device.
      calls = "creat|openat2?|open_by_handle_at|open_tree(_attr)?|fsopen|fspick|fsmount|dup|dup2|dup3|pipe2?" \
          "|memfd_create"
      calls = calls "|memfd_secret|eventfd2?|signalfd4?|timerfd_create|epoll_create1?|inotify_init1?|fanotify_init" \
          "|userfaultfd"
      calls = calls "|pidfd_open|pidfd_getfd|perf_event_open|bpf|landlock_create_ruleset|seccomp|io_uring_setup"
      calls = calls "|io_uring_queue_init(_params|_mem)?|socket|socketpair|accept4?|recvmsg|recvmmsg|mq_open" \
          "|sem_open|shm_open"
      calls = calls "|fopen|freopen|fdopen|popen|tmpfile|mkostemps?|mkstemps?|opendir|fdopendir|scandir(at)?|n?ftw" \
          "|fts_open"
      calls = calls "|glob|wordexp|catopen|setmntent|posix_openpt|getpt|openpty|forkpty|login_tty|rcmd(_af)?" \
          "|rexec(_af)?"
      calls = calls "|openlog|v?syslog|getaddrinfo|getnameinfo|gethostby(name|addr)2?(_r)?|gz(d)?open"
      edge = "[^A-Za-z0-9_]"
      # A word before a bracket, or with :: before it; open() only as the system has it: files and queues have an open()
      # of their own.
      made = "(^|[^A-Za-z0-9_.>])(" calls ")(64)? *\\(|(^|" edge ")::(open|" calls ")(64)?(" edge "|$)"
      made = made "|(^|[^A-Za-z0-9_.>:])open(64)? *\\((.*[^A-Za-z0-9_]O_[A-Z]|$)"
      made = made "|F_DUPFD|(SYS|__NR)_(open|" calls ")(64)?(" edge "|$)"
      # Types that have one: whoever names them says with which file, or has a member for it.
      made = made "|(^|" edge ")(basic_|w)?([io]?fstream|filebuf)(" edge "|$)|directory_iterator|stdio_filebuf"
      made = made "|(filesystem|fs)::copy(_file)?(" edge "|$)"
    }
    FNR == 1 { guarded = -9 }
    {
      line = $0
      sub(/\/\/.*/, "", line)
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      if (line ~ /^ *#/) line = ""
      if (line ~ /(const )?AboveStdio [a-z_]+;/) guarded = FNR
      if (line !~ made || FNR - guarded <= 3) next
      printf "%s:%d: a descriptor is made without an AboveStdio before it: %s\n", FILENAME, FNR, $0
      failed = 1
    }
    END { exit failed }'
