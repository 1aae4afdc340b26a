#!/usr/bin/env bash
# options_lint.sh SOURCE_DIR: measures each `struct ...Options` in the headers under longhaul/; the first rule holds for
# every struct there, since options may have other names, too.
#
#   1. It has at most 20 fields. Only where TensorFlow's parameters alone are 20 may four of ours follow, below the line
#      "// Longhaul's own; TensorFlow's names end here.".
#   2. No name of a field, whatever its type, is declared in more than two such structs: one that passes on another's
#      options has that struct as a member. Not counted are members that are option structs themselves. `reasons` lists
#      the exceptions, those of our own with the number of structs that have it; one that is not needed any more is a
#      failure.
#   3. Each field has an initializer, at least {}: without one, GCC's -Wextra warns of every program that names some
#      of the options and leaves this one out.
#   4. It is a struct without a base, whose fields would not be seen here.
set -euo pipefail
cd "$1"

# measure WHICH: "options", or "others", which are not named so; a struct within another of its kind counts for none.
measure() {
  find longhaul -name '*.h' ! -name '*_test.h' ! -name '*_fixture.h' -print | LC_ALL=C sort |
    xargs awk -v which="$1" '
    # "NAME" may be in any number of structs, "NAME=3" in three.
    function except(names, reason,    n, words, i, parts) {
      n = split(names, words, " ")
      for (i = 1; i <= n; i++) {
        split(words[i], parts, "=")
        reasons[parts[1]] = reason
        most[parts[1]] = parts[2]
      }
    }
    BEGIN {
      marker = "// Longhaul\047s own; TensorFlow\047s names end here."
      except("name shared_name capacity num_threads shapes clear_devices",
          "parameters of TensorFlow\047s functions of operations, queues and graphs")
      except("master hooks checkpoint_dir checkpoint_filename_with_path stop_grace_period_secs recovery_wait_secs " \
          "init_feed_dict checkpoint_basename graph scaffold saver max_wait_secs init_fn init_op local_init_op " \
          "ready_op ready_for_local_init_op summary_op summary_writer",
          "parameters of TensorFlow\047s sessions, session creators, hooks, Scaffold and Supervisor")
      except("max_to_keep keep_checkpoint_every_n_hours",
          "parameters of TensorFlow\047s Saver and CheckpointManager; a mirror may keep more or fewer")
      except("clock files", "the world: each can be given another one, in tests above all")
      except("coordinator=8 preemption=5 saves=4 tenure=6",
          "handles of one object that the program, or a front end, shares")
      except("expected_bytes=3", "how much comes: of a file, of a writer of such files, of a bundle")
      except("save_secs save_steps output_dir every_n_steps", "parameters of TensorFlow\047s hooks")
      except("timeout=3", "TensorFlow\047s name, of a run and of checkpoints_iterator(); and a wait for an example")
      except("batch_size=5 num_epochs=4 shuffle=4 seed=7 num_replicas=3 replica=3",
          "an order of examples: as a loader, as an operation, and without either")
      except("security=3 limits=4 frames=3",
          "who may call, how long, and how much: of a server, its port and its lines")
      except("directory=10", "each another directory")
      except("address=4", "each where something else listens")
      except("max_bytes_per_second=4", "two limits, of a saver and of a mirror, each with what writes for it")
    }
    function complain(line, what) {
      printf "%s:%d: %s\n", FILENAME, line, what
      failed = 1
    }
    function is_home(type) {
      return type ~ /Options$/
    }
    function check_fields(    limit) {
      limit = of_tensorflow == 20 ? 24 : 20
      if (fields > limit) {
        complain(FNR, struct " has " fields " fields; " limit \
                 " is the most: put those that belong together into a struct")
      }
    }
    # One with its body, which ends without a semicolon.
    function is_method(    head) {
      head = declaration
      sub(/[={].*/, "", head)
      return head ~ /\)[ \t]*(const)?[ \t]*$/
    }
    function take_declaration(    has_value, name, type) {
      has_value = match(declaration, /[={]/)
      if (has_value) declaration = substr(declaration, 1, RSTART - 1)
      gsub(/[ \t]+/, " ", declaration)
      gsub(/^ | $/, "", declaration)
      if (declaration == "" || declaration ~ /\)( const)?$|^(using|static|friend|struct|class|enum) /) return
      fields++
      if (which == "others") return
      name = type = declaration
      sub(/.* /, "", name)
      sub(/[[].*/, "", name)
      sub(/ [^ ]*$/, "", type)
      if (type ~ /,$/) complain(FNR, struct " declares several fields at once: one a declaration")
      if (!has_value) complain(FNR, struct "::" name " has no initializer; write at least {}")
      if (is_home(type)) return
      uses[name]++
      used_by[name] = used_by[name] " " struct
      if (uses[name] == 3) third[++n_third] = name
      if (uses[name] == 3) place[name] = FILENAME ":" FNR
    }
    # Whether a struct of this kind begins here.
    function begins() {
      if ($0 !~ /^ *struct [A-Za-z0-9_:]+( final)?( : [^{]*)? *\{/) return 0
      return (/^ *struct [A-Za-z0-9_:]*Options[ {]/ ? "options" : "others") == which
    }
    # A struct may be final.
    function is_no_plain_struct() {
      return /^ *(class|struct) [A-Za-z0-9_:]*Options( final)?( :[^{]*)? *\{/ && (/^ *class / || / : /)
    }
    depth == 0 && which == "options" && is_no_plain_struct() {
      complain(FNR, "options are a struct without a base: " $0)
    }
    depth == 0 && begins() {
      struct = $0
      sub(/^ *struct /, "", struct)
      sub(/[ {].*/, "", struct)
      sub(/^[^{]*\{/, "")
      depth = 1
      fields = of_tensorflow = 0
      declaration = ""
    }
    depth > 0 {
      if (index($0, marker) > 0) of_tensorflow = fields
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
        if (which == "options") structs++
        check_fields()
      }
    }
    END {
      for (i = 1; i <= n_third; i++) {
        name = third[i]
        needed[name] = 1
        if (name in reasons && (most[name] == "" || uses[name] <= most[name])) continue
        printf "%s: `%s` is declared in%s: give it one home, a struct that is their member\n", place[name], name,
            used_by[name]
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
}

status=0
measure options || status=1
measure others || status=1
exit $status
