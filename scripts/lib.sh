# shellcheck shell=bash disable=SC2034
# What the commands in this folder share: stages of one line each, packages, configure and build. To be sourced.
#
# A stage's own output goes to a log under build/log; its tail is shown when the stage fails. While it runs, a terminal
# shows a live line and anything else a plain line every 20 seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BUILD_DIR=build/release
readonly LOG_DIR=build/log
mkdir -p "$LOG_DIR"

# ccache is used where it is installed. It makes a first build a little slower, so it is not installed here.
readonly BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config
  libtorch-dev libopenblas-dev libprotobuf-dev protobuf-compiler libleveldb-dev libsnappy-dev libisal-dev liburing-dev
  libdw-dev zlib1g-dev libpng-dev libjpeg-dev libssl-dev libgrpc++-dev protobuf-compiler-grpc
  libspdlog-dev libfmt-dev libcli11-dev libcpp-httplib-dev nlohmann-json3-dev libjs-dygraphs
  libgtest-dev libgmock-dev)
readonly DATA_PACKAGES=(dataset-fashion-mnist)
readonly TEST_PACKAGES=(clang clang-format-19 groff-base iproute2)
# Where they cannot be had, tests in a browser are skipped.
readonly BROWSER_PACKAGES=(chromium chromium-driver)

show_progress=
monitor=
stop_monitor() {
  if [ -n "$monitor" ]; then
    kill "$monitor" 2>/dev/null || true
    wait "$monitor" 2>/dev/null || true
    monitor=
    [ -n "$show_progress" ] && printf '\r\033[K'
  fi
  return 0
}
trap stop_monitor EXIT
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then show_progress=live; fi

duration() {
  if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# progress_of NAME LOG: the last "[12/300]" that ninja, "12/30 Test", that ctest, or "NAME: so far", that the program
# has written to its log.
progress_of() {
  tail -c 8192 "$2" 2>/dev/null | grep -aoE "^\[[0-9]+/[0-9]+\]|^ *[0-9]+/[0-9]+ Test|^$1: .*" | tail -n 1 |
    sed -E "s|^$1: ||; t; s|[^0-9/]||g; s|/| of |" || true
}

watch_stage() {
  local name=$1 log=$2 start=$SECONDS pause=20 line never
  [ -n "$show_progress" ] && pause=1
  exec {never}<> <(:)  # waiting on it is a sleep that leaves no process behind
  while true; do
    read -r -t "$pause" -u "$never" || true
    line=$(progress_of "$name" "$log")
    line="$name: ${line:+$line, }$(duration $((SECONDS - start)))"
    if [ -n "$show_progress" ]; then printf '\r\033[K%s' "$line"; else echo "$line"; fi
  done
}

fail() {
  echo "$*" >&2
  exit 1
}

# run_logged NAME COMMAND...: returns the command's status; its output is in the log of that name.
run_logged() {
  local name=$1 log=$LOG_DIR/$1.log status=0
  shift
  : >"$log"
  watch_stage "$name" "$log" &
  monitor=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_monitor
  return "$status"
}

# stage NAME WHAT COMMAND...: "NAME: WHAT (12 s)", or the tail of the log and the end of the script.
stage() {
  local name=$1 what=$2 start=$SECONDS status=0
  shift 2
  run_logged "$name" "$@" || status=$?
  if [ "$status" != 0 ]; then
    tail -n 40 "$LOG_DIR/$name.log" >&2
    fail "$name: failed with status $status; the full log is $LOG_DIR/$name.log"
  fi
  echo "$name: $what ($(duration $((SECONDS - start))))"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
  { dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null || true; } |
    awk -v wanted="$*" '
      /^.i / { have[$2] = 1 }
      END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) print names[i] }'
}

install_packages() {
  local apt=(as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  as_root dpkg --configure -a
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends "$@"
}

# need_packages PACKAGE...: installs what is missing of them.
need_packages() {
  command -v dpkg-query >/dev/null || fail "packages: this is not a Debian system; install the equivalents of: $*"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} = 0 ] && return
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "packages: run this as root first: apt-get install ${missing[*]}"
    sudo -v
  fi
  echo "packages: installing ${#missing[@]}"
  stage packages installed install_packages "${missing[@]}"
  rm -f "$BUILD_DIR/.configured"
}

# want_packages PACKAGE...: the same, where they can be had; says if not.
want_packages() {
  local missing
  command -v dpkg-query >/dev/null || return 0
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} = 0 ] && return
  if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
    run_logged wanted_packages install_packages "${missing[@]}" && return
  fi
  echo "packages: going on without ${missing[*]}; tests that need them are skipped"
}

# Configures unless that is done; ninja itself does it again after a change to a CMake file.
configure() {
  if [ ! -e "$BUILD_DIR/.configured" ] || [ ! -e "$BUILD_DIR/build.ninja" ]; then
    stage configure ready cmake --preset release
    touch "$BUILD_DIR/.configured"
  fi
}

# build [TARGET...]: these targets and what they need; all of them without an argument.
build() {
  local targets=()
  [ $# -gt 0 ] && targets=(--target "$@")
  stage build ready cmake --build "$BUILD_DIR" "${targets[@]}"
}
