#!/usr/bin/env bash
# descriptor_lint_test.sh SOURCE_DIR: shows that descriptor_lint.sh accepts a good tree and rejects each kind of bad
# call.
. "$1/tests/lint_fixture.sh"

# put PATH LINES: the tree is that one file.
put() {
  rm -rf "$tree/longhaul"
  mkdir -p "$tree/$(dirname "$1")"
  printf '%b\n' "$2" >"$tree/$1"
}
accepts() {
  put "$1" "$2"
  passes "$1 with $2"
}
rejects() {
  put "$1" "$2"
  complains "$1 with $2"
  [[ $said == "$1:"*": a descriptor is made"* ]] || failed "$1: said '$said'"
}

accepts longhaul/io/file.cc '  const AboveStdio above;\n  const int fd = ::open(path, flags);'
accepts longhaul/io/file.cc '  auto file = files.open(path);\n  file->open(path);\n  Thing Reader::open(Files& files) {'
accepts longhaul/io/file_test.cc '  const int fd = ::open(path, flags);'
accepts longhaul/io/file.cc '  fcntl(fd, F_SETFL, O_NONBLOCK);  // not ::open(path)'
accepts longhaul/io/file.cc '  throw_errno(errno, "::open(");'
accepts longhaul/io/file.cc \
  '#include <fstream>\n  std::vector<int> open(3);\n  reader.accept(visitor);\n  const int dup_count = 0;'
accepts longhaul/io/file.cc '  const AboveStdio above;\n  std::ifstream file(path);'
for call in '::open(path, flags)' 'pipe2(ends, 0)' '::pipe(ends)' 'eventfd(0, 0)' 'socket(AF_INET, 0, 0)' \
  'openat(fd, path)' \
  'mkstemp(path)' 'dup(fd)' 'dup2(fd, other)' 'fcntl(fd, F_DUPFD_CLOEXEC, 0)' 'io_uring_queue_init(8, &ring, 0)' \
  'accept4(fd, 0, 0, 0)' 'fopen(path, "r")' 'std::fopen(path, "r")' 'memfd_create(name, 0)' 'epoll_create1(0)' \
  'opendir(path)' 'open(path, O_RDONLY | O_CLOEXEC)' 'open64(path, O_RDONLY)' 'retried(::open, path)' '::socket' \
  'std::freopen(path, "r", stdin)' 'popen(command, "r")' 'dup3(fd, other, 0)' 'eventfd(0, 0)' \
  'socketpair(1, 2, 0, ends)' \
  'signalfd(-1, &set, 0)' 'timerfd_create(0, 0)' 'inotify_init1(0)' 'tmpfile()' 'mkostemp(path, 0)' \
  'shm_open(name, 0, 0)' \
  'pidfd_open(pid, 0)' 'perf_event_open(&attributes, 0, 0, 0, 0)' 'fdopendir(fd)' 'fdopen(fd, "r")' \
  'openpty(&a, &b, 0, 0, 0)' \
  'recvmsg(fd, &message, 0)' 'syscall(SYS_memfd_create, name, 0)' 'syscall(__NR_openat, path)' 'fopen64(path, "r")' \
  'getaddrinfo(host, 0, 0, &found)' 'scandir(path, &names, 0, 0)' 'glob(pattern, 0, 0, &found)' \
  'nftw(path, visit, 9, 0)' \
  'syslog(3, "text")' 'fanotify_init(0, 0)' 'epoll_create(1)' 'creat(path, 0600)' \
  'std::filesystem::copy_file(from, to)'; do
  rejects longhaul/io/file.cc "  const int fd = $call;"
done
rejects longhaul/io/file.cc '  std::ifstream file(path);'
rejects longhaul/io/file.cc '  std::ofstream file{path};'
rejects longhaul/io/file.h '  std::ifstream file_;'
rejects longhaul/io/file.cc '  return std::make_unique<std::ofstream>(path);'
rejects longhaul/io/file.cc '  std::fstream both(path);'
rejects longhaul/io/file.cc '  std::wifstream wide(path);'
rejects longhaul/io/file.cc '  std::basic_ofstream<char> file(path);'
rejects longhaul/io/file.h '  std::filebuf buffer_;'
rejects longhaul/io/file.cc '  const int fd = open(\n      path, flags);'
rejects longhaul/io/file.cc '  using Entries = std::filesystem::directory_iterator;'
rejects longhaul/io/file.cc '  for (const auto& each : std::filesystem::directory_iterator(path)) {'
rejects longhaul/io/file.cc '  std::filesystem::recursive_directory_iterator it(path, error);'
rejects longhaul/io/file.cc '  const AboveStdio above;\n\n\n\n  const int fd = ::open(path, flags);'
echo "the lint accepts and rejects as it should"
