#!/usr/bin/env bash
# layer_lint.sh SOURCE_DIR: holds the arrows between the layers over what each file under longhaul/ includes.
#
# The arrows stand in cmake/LonghaulLayer.cmake and are read from there. A layer includes itself and what its arrows name;
# its tests may include any layer that is free of libtorch and gRPC as well. libtorch's headers belong to longhaul/runtime,
# longhaul/binding and longhaul/torch.h, gRPC's to longhaul/cluster. What stands directly in longhaul/ is above all layers.
set -euo pipefail
cd "$1"

find longhaul \( -name '*.h' -o -name '*.cc' \) -print | LC_ALL=C sort |
  xargs awk -v arrows_file=cmake/LonghaulLayer.cmake '
    BEGIN {
      while ((getline line < arrows_file) > 0) {
        if (line !~ /^set\(LONGHAUL_ARROWS_/) continue
        gsub(/^set\(LONGHAUL_ARROWS_|[")]/, "", line)
        n = split(line, words, " ")
        known[words[1]] = 1
        for (i = 2; i <= n; i++) arrow[words[1], words[i]] = 1
      }
    }
    function complain(what) {
      printf "%s:%d: %s\n", FILENAME, FNR, what
      failed = 1
    }
    # The layer of longhaul/LAYER/...; empty for longhaul/file.
    function layer_of(path) {
      sub(/^longhaul\//, "", path)
      return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : ""
    }
    function on_libtorch(layer) {
      return layer == "runtime" || layer == "binding"
    }
    FNR == 1 {
      layer = layer_of(FILENAME)
      is_test = FILENAME ~ /_(test|fixture)\.(h|cc)$/
      if (layer != "" && !(layer in known)) complain("layer " layer " has no arrows in " arrows_file)
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
      path = $0
      sub(/^[^"<]*["<]/, "", path)
      sub(/[">].*/, "", path)
      if (path ~ /^longhaul\//) {
        other = layer_of(path)
        if (layer == "" || other == layer || (layer, other) in arrow) next
        if (is_test && other != "" && !on_libtorch(other) && other != "cluster") next
        if (is_test && on_libtorch(layer) && other == "") next
        complain("layer " layer " must not include " path)
      } else if (path ~ /^(ATen|torch|c10|caffe2)\//) {
        if (!on_libtorch(layer) && FILENAME !~ /^longhaul\/torch\./) complain("only longhaul/runtime and binding may include libtorch: " path)
      } else if (path ~ /^grpc/) {
        if (layer != "cluster") complain("only longhaul/cluster may include gRPC: " path)
      } else if ($0 ~ /"/) {
        complain("our own headers are included as longhaul/LAYER/NAME.h: " path)
      }
    }
    END { exit failed }'
