#!/usr/bin/env bash
# options_lint.sh SOURCE_DIR: measures each `struct ...Options` in the headers under longhaul/.
#
#   1. It has at most 20 fields. One with the parameters of a TensorFlow function may have 20 of these and 20 of ours, if
#      the line "// Longhaul's own; TensorFlow's names end here." stands between them.
#   2. No field, a name with its type, is declared in more than two such structs: one that passes on another's options has
#      that struct as a member. Not counted are members that are option structs themselves, and handles of objects that
#      the program shares among several (pointers, shared_ptr, Coordinator). `reasons` lists the exceptions; one that is not
#      needed any more is a failure.
#   3. Each field has an initializer, at least {}: without one, GCC's -Wextra warns of every program that names some of the
#      options and leaves this one out.
set -euo pipefail
cd "$1"

find longhaul -name '*.h' ! -name '*_test.h' ! -name '*_fixture.h' -print | LC_ALL=C sort |
  xargs awk '
    function except(names, reason,    n, words, i) {
      n = split(names, words, " ")
      for (i = 1; i <= n; i++) reasons[words[i]] = reason
    }
    BEGIN {
      marker = "// Longhaul\047s own; TensorFlow\047s names end here."
      except("name shared_name capacity num_threads shapes clear_devices", "parameters of TensorFlow\047s functions of operations, queues and graphs")
      except("master hooks checkpoint_dir checkpoint_filename_with_path stop_grace_period_secs recovery_wait_secs init_feed_dict checkpoint_basename", "parameters of TensorFlow\047s sessions, session creators and Supervisor")
      except("save_secs save_steps output_dir", "parameters of TensorFlow\047s hooks")
      except("batch_size num_epochs shuffle seed num_replicas replica", "an order of examples: as a loader, as an operation, and without either")
      except("directory", "each another directory")
      except("max_bytes_per_second", "two limits, of a saver and of a mirror, each with what writes for it")
    }
    function complain(line, what) {
      printf "%s:%d: %s\n", FILENAME, line, what
      failed = 1
    }
    function is_handle(type) {
      return type ~ /Options$|\*$|^std::shared_ptr<|^Coordinator$/
    }
    function end_part() {
      if (fields > 20) complain(FNR, struct " has " fields " fields; 20 is the most: put those that belong together into a struct")
      fields = 0
    }
    # One with its body, which ends without a semicolon.
    function is_method(    head) {
      head = declaration
      sub(/[={].*/, "", head)
      return head ~ /\)[ \t]*(const)?[ \t]*$/
    }
    function take_declaration(    has_value, name, type, key) {
      has_value = match(declaration, /[={]/)
      if (has_value) declaration = substr(declaration, 1, RSTART - 1)
      gsub(/[ \t]+/, " ", declaration)
      gsub(/^ | $/, "", declaration)
      if (declaration == "" || declaration ~ /\)( const)?$|^(using|static|friend|struct|class|enum) /) return
      fields++
      name = type = declaration
      sub(/.* /, "", name)
      sub(/ [^ ]*$/, "", type)
      if (type ~ /,$/) complain(FNR, struct " declares several fields at once: one a declaration")
      if (!has_value) complain(FNR, struct "::" name " has no initializer; write at least {}")
      if (is_handle(type)) return
      key = type " " name
      uses[key]++
      used_by[key] = used_by[key] " " struct
      if (uses[key] == 3) third[++n_third] = key
      if (uses[key] == 3) place[key] = FILENAME ":" FNR
    }
    depth == 0 && /^ *struct [A-Za-z0-9]*Options( final)? *\{/ {
      struct = $0
      sub(/^ *struct /, "", struct)
      sub(/[ {].*/, "", struct)
      sub(/^[^{]*\{/, "")
      depth = 1
      fields = 0
      declaration = ""
    }
    depth > 0 {
      if (index($0, marker) > 0) end_part()
      line = $0
      sub(/\/\/.*/, "", line)
      for (i = 1; i <= length(line) && depth > 0; i++) {
        c = substr(line, i, 1)
        if (c == "{") depth++
        if (c == "}") depth--
        if (c == ";" && depth == 1) {
          take_declaration()
          declaration = ""
        } else {
          declaration = declaration c
          if (c == "}" && depth == 1 && is_method()) declaration = ""
        }
      }
      declaration = declaration " "
      if (depth == 0) {
        structs++
        end_part()
      }
    }
    END {
      for (i = 1; i <= n_third; i++) {
        name = third[i]
        sub(/.* /, "", name)
        needed[name] = 1
        if (name in reasons) continue
        printf "%s: `%s` is declared in%s: give it one home, a struct that is their member\n", place[third[i]], third[i], used_by[third[i]]
        failed = 1
      }
      # The exceptions are those of a tree that has these structs.
      for (name in reasons) {
        if (structs < 40 || name in needed) continue
        print "tests/options_lint.sh: `" name "` is no exception any more"
        failed = 1
      }
      exit failed
    }'
