#!/usr/bin/env bash
# layer_lint.sh SOURCE_DIR [--uses]: holds the arrows between the layers over what each file under longhaul/ includes.
# With --uses it only prints what the code without its tests includes: lines "PLACE OTHER", with repetitions.
#
# The arrows stand in cmake/LonghaulLayer.cmake, each to a line above its own, and are read from there. A layer or a
# room of one (longhaul/train/saving) includes itself and what its arrows name, and with a layer its rooms; what stands
# in the folder of a layer with rooms itself is tests and fixtures.
#
# What stands directly in longhaul/ is for users, and above all layers. Each header there has a component
# (cmake/public_headers.txt), a layer, and includes what this and its rooms may use: who links that alone may include
# it.
#
# Tests may include any layer that is free of libtorch and gRPC as well, except rooms that stay apart from their own
# (LONGHAUL_APART), which they must not reach by way of a fixture either. libtorch's headers belong to longhaul/runtime,
# longhaul/binding, longhaul/trainer and longhaul/torch.h, gRPC's to the sources of longhaul/grpc, and to none of its
# headers.
set -euo pipefail
cd "$1"

find longhaul \( -name '*.h' -o -name '*.cc' \) -print | LC_ALL=C sort |
  xargs awk -v arrows_file=cmake/LonghaulLayer.cmake -v public_file=cmake/public_headers.txt -v uses_only="${2:-}" '
    BEGIN {
      while ((getline line < arrows_file) > 0) {
        if (line ~ /^set\(LONGHAUL_APART /) read_apart(line)
        if (line !~ /^set\(LONGHAUL_ARROWS_/) continue
        while (line !~ /\)$/ && (getline more < arrows_file) > 0) line = line more
        gsub(/^set\(LONGHAUL_ARROWS_|[")]/, "", line)
        n = split(line, words, " ")
        for (i = 2; i <= n; i++) {
          arrow[words[1], words[i]] = 1
          if (!(words[i] in known)) {
            print arrows_file ": the arrow from " words[1] " to " words[i] " does not lead to a line above it"
            failed = 1
          }
        }
        known[words[1]] = 1
        if (words[1] ~ /\//) known[layer_of(words[1])] = has_rooms[layer_of(words[1])] = 1
      }
      while ((getline line < public_file) > 0) {
        split(line, words, " ")
        if (words[1] ~ /^longhaul\//) component_of[words[1]] = words[2]
      }
    }
    function complain(what) {
      if (uses_only) return
      printf "%s:%d: %s\n", FILENAME, FNR, what
      failed = 1
    }
    function layer_of(place) {
      sub(/\/.*/, "", place)
      return place
    }
    # The layer of longhaul/LAYER/..., with its room where there is one: "train/saving"; empty for longhaul/file.
    function place_of(path,    parts, n) {
      n = split(path, parts, "/")
      if (n < 3) return ""
      return n > 3 && (parts[2] "/" parts[3]) in known ? parts[2] "/" parts[3] : parts[2]
    }
    function read_apart(line,    n, words, i) {
      gsub(/^set\(LONGHAUL_APART |\)/, "", line)
      n = split(line, words, " ")
      for (i = 1; i <= n; i++) apart[words[i]] = 1
    }
    function are_apart(place, other) {
      return place != other && place in apart && other in apart
    }
    function may_use(place, other) {
      return place == other || (place, other) in arrow || (place, layer_of(other)) in arrow
    }
    # An arrow to a layer with rooms is used by an include of any of them.
    function print_use(place, other) {
      print place, other
      print place, layer_of(other)
    }
    # Whether a public header of this component may include a file of that place; longhaul is all of them.
    function component_may_use(component, other,    room) {
      if (component == "longhaul" || may_use(component, other)) return 1
      for (room in known) if (layer_of(room) == component && may_use(room, other)) return 1
      return 0
    }
    function on_libtorch(layer) {
      return layer == "runtime" || layer == "binding" || layer == "trainer"
    }
    FNR == 1 {
      layer = place_of(FILENAME)
      is_test = FILENAME ~ /_(test|fixture)\.(h|cc)$/
      if (layer != "" && !(layer in known)) complain("layer " layer " has no arrows in " arrows_file)
      if (layer == "" && !(FILENAME in component_of)) complain("stands in no layer, and is not in " public_file)
      if (layer in has_rooms && !is_test) {
        complain("layer " layer " has rooms: this stands in none that has arrows in " arrows_file)
      }
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
      path = $0
      sub(/^[^"<]*["<]/, "", path)
      sub(/[">].*/, "", path)
      if (path ~ /^longhaul\//) {
        other = place_of(path)
        if (layer == "") {
          if (other == "") other = component_of[path]
          if (component_may_use(component_of[FILENAME], other)) next
          complain("component " component_of[FILENAME] " must not include " path)
          next
        }
        if (uses_only && !is_test) print_use(layer, other)
        includes[FILENAME] = includes[FILENAME] " " path
        if (layer in apart) in_apart[FILENAME] = layer
        if (are_apart(layer, other)) {
          complain(layer " and its tests must never include " path)
          next
        }
        if (may_use(layer, other)) next
        if (is_test && other != "" && !on_libtorch(other) && other != "cluster") next
        if (is_test && on_libtorch(layer) && other == "") next
        complain("layer " layer " must not include " path)
      } else if (path ~ /^(ATen|torch|c10|caffe2)\//) {
        if (!on_libtorch(layer) && FILENAME !~ /^longhaul\/(torch\.|testing\/fake_device\/)/) {
          complain("only longhaul/runtime, binding, trainer and a device for tests may include libtorch: " path)
        }
      } else if (path ~ /^grpc/) {
        if (layer_of(layer) != "grpc" || FILENAME !~ /\.cc$/) {
          complain("only sources of longhaul/grpc may include gRPC: " path)
        }
      } else if ($0 ~ /"/) {
        complain("our own headers are included as longhaul/LAYER/NAME.h: " path)
      }
    }
    # Whether file includes one of a room apart from `place`, by way of headers that both may include.
    function check_reached(file, place, from,    n, headers, i) {
      n = split(includes[file], headers, " ")
      for (i = 1; i <= n; i++) {
        if ((from, headers[i]) in reached) continue
        reached[from, headers[i]] = 1
        if (file != from && are_apart(place, place_of(headers[i]))) {
          print from ": " place " and its tests must never include " headers[i] ", as " file " does for it"
          failed = 1
        }
        check_reached(headers[i], place, from)
      }
    }
    END {
      if (!uses_only) for (file in in_apart) check_reached(file, in_apart[file], file)
      exit failed
    }'
