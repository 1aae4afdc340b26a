#!/usr/bin/env bash
# deployment.sh ROOT packages|systemd|kubernetes: checks the files in examples/deployment.
#   packages:   the Dockerfile installs what scripts/quickstart does, and the page links to each of the files
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
