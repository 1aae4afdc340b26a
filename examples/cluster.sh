#!/usr/bin/env bash
# examples/cluster.sh [--kill=TASK@SECONDS]... [--program=FILE] [ARGS]: trains a classifier on Fashion-MNIST with a
# cluster of five processes on this machine: a chief, two workers, two parameter servers. ARGS go to each of them:
# build/release/examples/fashion_mnist_cluster --help lists them. Each line begins with the name of its task. Kill any
# task at any moment: it is started again, as an operator would, and the training goes on. --kill=worker-1@10 does it
# after ten seconds. It ends with the chief; Ctrl-C ends all, and the next start continues. --program: a program that is
# built already.
source "$(dirname "$0")/../scripts/lib.sh"

readonly TASKS=(chief-0 ps-0 ps-1 worker-0 worker-1)
readonly WAIT_FOR_WORKERS=10  # seconds, once the chief is done

program=
kills=()
arguments=()
for argument in "$@"; do
  case $argument in
    --kill=*@*) kills+=("${argument#--kill=}") ;;
    --kill=* | --kill) fail "usage: --kill=TASK@SECONDS, where TASK is one of: ${TASKS[*]}" ;;
    --program=*) program=${argument#--program=} ;;
    *) arguments+=("$argument") ;;
  esac
done
for kill in ${kills[@]+"${kills[@]}"}; do
  [[ " ${TASKS[*]} " == *" ${kill%@*} "* ]] || fail "--kill=$kill: there is no such task, but ${TASKS[*]}"
  [[ ${kill#*@} =~ ^[0-9]+([.][0-9]+)?$ ]] || fail "--kill=$kill: what follows @ is no number of seconds"
done
has_argument() { [[ " ${arguments[*]-} " == *" $1"* ]]; }
has_argument --logdir || arguments+=(--logdir=runs/cluster)
has_argument --save_model_secs || arguments+=(--save_model_secs=5)

if [ -z "$program" ]; then
  need_packages "${BUILD_PACKAGES[@]}" "${DATA_PACKAGES[@]}"
  configure
  build fashion_mnist_cluster
  program=$BUILD_DIR/examples/fashion_mnist_cluster
fi

# Nobody listens on these ports now. They lie below those that the system gives away by itself.
is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
choose_ports() {
  local port
  for _ in {1..100}; do
    first_port=$((20000 + 5 * (RANDOM % 2400)))
    for port in $(seq "$first_port" $((first_port + ${#TASKS[@]} - 1))); do is_free "$port" || continue 2; done
    return
  done
  fail "cluster: no five free ports in a row between 20000 and 32000"
}
choose_ports
address() { echo "\"localhost:$((first_port + $1))\""; }
cluster="{\"chief\": [$(address 0)], \"ps\": [$(address 1), $(address 2)], \"worker\": [$(address 3), $(address 4)]}"

set -m  # a group for each task: Ctrl-C comes to this script alone
declare -A pids=()
timers=()
exec {never}<> <(:)
pause() { read -r -t "$1" -u "$never" || true; }  # without a process, which Ctrl-C would hit in place of this one

# The program's own output, each line behind the task's name; the pid is the program's. If this script is killed, each
# task is asked to stop.
start() {
  TF_CONFIG="{\"cluster\": $cluster, \"task\": {\"type\": \"${1%-*}\", \"index\": ${1#*-}}}" \
    setpriv --pdeathsig TERM "$program" "${arguments[@]}" \
      > >(trap '' INT && exec sed -u "s/^/$(printf '%-8s' "$1") | /") 2>&1 &
  pids[$1]=$!
  echo "${pids[$1]}" >"$pid_files/$1"
}

# end_tasks SIGNAL TASK...: waits for five seconds, then kills.
end_tasks() {
  local signal=$1 task
  shift
  for task in "$@"; do kill -s "$signal" "${pids[$task]}" 2>/dev/null || true; done
  await_tasks 5 "$@" && return 0  # a bare return gives the status of the trap's program
  for task in "$@"; do
    kill -KILL "${pids[$task]}" 2>/dev/null || continue
    wait "${pids[$task]}" 2>/dev/null || true  # it would say that it was killed
  done
}

# await_tasks SECONDS TASK...: whether they have all ended by then.
await_tasks() {
  local until=$((SECONDS + $1)) task
  shift
  for task in "$@"; do
    while kill -0 "${pids[$task]}" 2>/dev/null; do
      [ "$SECONDS" -lt "$until" ] || return 1
      pause 0.1
    done
  done
}

running() {
  local task
  for task in "${TASKS[@]}"; do
    if [ -n "${pids[$task]-}" ] && [[ $task == $1 ]] && kill -0 "${pids[$task]}" 2>/dev/null; then echo "$task"; fi
  done
}

clean_up() {
  local left timer
  stop_monitor
  for timer in ${timers[@]+"${timers[@]}"}; do kill -- "-$timer" 2>/dev/null || true; done
  mapfile -t left < <(running '[cw]*')  # the chief saves once more, while there are parameter servers
  [ ${#left[@]} = 0 ] || end_tasks INT "${left[@]}"
  mapfile -t left < <(running '*')
  [ ${#left[@]} = 0 ] || end_tasks INT "${left[@]}"
  rm -rf "$pid_files"
}
pid_files=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for task in "${TASKS[@]}"; do start "$task"; done
echo "cluster: $cluster"
for task in "${TASKS[@]}"; do echo "cluster: $task is process ${pids[$task]}"; done
echo "cluster: kill one: kill -9 PROCESS; it is started again"
for kill in ${kills[@]+"${kills[@]}"}; do
  (sleep "${kill#*@}" && kill -KILL "$(cat "$pid_files/${kill%@*}")" && echo "cluster: ${kill%@*} is killed") &
  timers+=($!)
done

# after_end TASK STATUS: what was killed, or stopped to be started again, is started again.
after_end() {
  case $1:$2 in
    chief-0:0) is_done=1 ;;
    worker-*:0) unset "pids[$1]" ;;
    *)
      [[ $1:$2 == ps-*:0 || $2 == 75 || $2 -gt 128 ]] ||
        fail "cluster: $1 has ended with status $2, an error: see its lines above"
      echo "cluster: $1 has ended with status $2 and is started again"
      start "$1"
      ;;
  esac
}

is_done=
while [ -z "$is_done" ]; do
  for task in "${TASKS[@]}"; do
    if [ -z "${pids[$task]-}" ] || kill -0 "${pids[$task]}" 2>/dev/null; then continue; fi
    status=0
    wait "${pids[$task]}" 2>/dev/null || status=$?
    after_end "$task" "$status"
  done
  pause 0.2
done
mapfile -t workers < <(running 'worker-*')
[ ${#workers[@]} = 0 ] || await_tasks "$WAIT_FOR_WORKERS" "${workers[@]}" || true
echo "cluster: the chief is done"
