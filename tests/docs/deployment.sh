#!/usr/bin/env bash
# deployment.sh ROOT packages|commands PROGRAM|systemd|kubernetes: checks the files in examples/deployment.
#   packages:   the Dockerfile installs what scripts/quickstart does, and the page links to each of the files
#   commands PROGRAM: `longhaul run` takes the options that the unit and the image give it, and the library knows the
#               variables that they set
#   systemd:    systemd-analyze accepts the unit
#   kubernetes: kubernetes-validate (of PyPI) accepts the manifest
# Without the program that it needs, it is skipped (77).
set -euo pipefail
cd "$1"
readonly FILES=examples/deployment

skip() {
  echo "skipped: $1"
  exit 77
}

case $2 in
  packages)
    status=0
    of_quickstart=$(bash -c 'source scripts/lib.sh && printf "%s\n" "${BUILD_PACKAGES[@]}"' | sort)
    of_image=$(awk '/^RUN apt-get/ { on = 1; next }
                    on { sub(/\\$/, ""); print }
                    on && !/ $/ { exit }' "$FILES/Dockerfile" | tr -s ' ' '\n' | grep . | sort)
    if ! diff <(echo "$of_quickstart") <(echo "$of_image"); then
      echo "$FILES/Dockerfile does not install what scripts/lib.sh has in BUILD_PACKAGES"
      status=1
    fi
    for file in "$FILES"/*; do
      grep -qF "($(realpath --relative-to=docs/guide "$file"))" docs/guide/deployment.md && continue
      echo "docs/guide/deployment.md has no link to $file"
      status=1
    done
    exit "$status"
    ;;
  commands)
    status=0
    # "run", "--max-restarts=20", "--" of an array in JSON, or of a line of the unit.
    runs=$(sed -nE 's/^(ENTRYPOINT|ExecStart=)(.*)/\2/p' "$FILES/Dockerfile" "$FILES/train@.service" | tr -d '[]",')
    [ "$(wc -l <<<"$runs")" = 2 ] || { echo "not one command in each of the files: $runs"; exit 1; }
    while read -r _ subcommand arguments; do
      options=${arguments%%--\ *}
      [ "$subcommand" = run ] || { echo "no longhaul run: $subcommand $arguments"; status=1; }
      # shellcheck disable=SC2086  # several options
      "$3" run ${options%--} -- /bin/true >/dev/null 2>&1 || { echo "longhaul run does not take: $options"; status=1; }
    done <<<"$runs"
    for variable in $(grep -rhoE 'LONGHAUL_[A-Z_]+' "$FILES" | sort -u); do
      grep -rqF "\"$variable\"" --include='*.cc' --include='*.h' longhaul && continue
      grep -rqE -- "-D$variable=" "$FILES" && grep -qF "$variable" CMakeLists.txt && continue
      echo "$FILES sets $variable, which nothing reads"
      status=1
    done
    exit "$status"
    ;;
  systemd)
    [ -x "$(command -v systemd-analyze)" ] || skip "systemd-analyze is not installed"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    # The programs and the user that it names are not on this machine.
    sed -e 's#^ExecStart=[^ ]*#ExecStart=/bin/true#' -e 's#^User=.*#User=root#' "$FILES/train@.service" \
      >"$folder/train@.service"
    systemd-analyze verify --man=no "$folder/train@.service"
    ;;
  kubernetes)
    validate=${KUBERNETES_VALIDATE:-$(command -v kubernetes-validate || true)}
    [ -x "$validate" ] || skip "kubernetes-validate is not installed (KUBERNETES_VALIDATE names it)"
    "$validate" --strict "$FILES/train.yaml"
    ;;
  *) exit 2 ;;
esac
