#!/usr/bin/env bash
# class_size_lint.sh SOURCE_DIR [LIMIT]: no class in longhaul/, examples/, benchmarks/ and tools/ has more than LIMIT
# private and protected members, data and functions together; 25 unless said otherwise, and 20 of Supervisor. A larger
# class tells several stories: divide it. LIMIT 0 lists every class that has any, with its count.
#
# Counted is what stands in private: and protected: sections, each overload and each name of a declaration. All of a
# struct counts if few can see it: one class, since it is in its private section or defined as Owner::Name, or one file,
# since it is in an anonymous namespace; and all of a class or struct called Impl. Not counted: types, using, friend,
# static_assert, constants (static, and const or constexpr), what is defaulted or deleted. Tests are left out, those in
# tests/ too, where a class such as that of tests/soak is one long story.
set -euo pipefail
cd "$1"

places=(longhaul)
for place in examples benchmarks tools; do [ ! -d "$place" ] || places+=("$place"); done
find "${places[@]}" \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.*' ! -name '*_fixture.*' -print | LC_ALL=C sort |
  xargs awk -v limit="${2:-25}" '
    BEGIN {
      literal_or_comment = "R\"[^()\\\\ ]*\\(|\"([^\"\\\\]|\\\\.)*\"|//|/\\*"
      literal_or_comment = literal_or_comment "|[A-Za-z0-9_]*\047([^\047\\\\]|\\\\.)[^\047]*\047|[0-9A-Fa-f]\047"
    }
    # The classes with a lower limit: they had become large once, and were divided.
    function limit_of(class) {
      return class == "Supervisor" && limit > 20 ? 20 : limit
    }
    # The scopes that are open are numbered from the outside, and 0 is the file. Of each: text[d], the declaration so
    # far; parens[d], the brackets open in it; is_over[d], its last block was a body, so it ends unless an initializer
    # follows. Of those with is_class[d]: its name[d] and head[d], the line; access[d], to what comes next; hidden[d],
    # all of it counts; private_members[d], so far.
    function complain(where, what) {
      print where ": " what
      failed = 1
    }
    function trimmed(s) {
      gsub(/[ \t]+/, " ", s)
      sub(/^ /, "", s)
      sub(/ $/, "", s)
      return s
    }
    function without_template(s,    i, open, c) {
      for (i = index(s, "<"); i <= length(s); ++i) {
        c = substr(s, i, 1)
        open += c == "<" ? 1 : c == ">" ? -1 : 0
        if (open == 0) break
      }
      return trimmed(substr(s, i + 1))
    }
    # The declaration without template <...>, [[...]], alignas() and the macros of base/mutex.h.
    function plain(s) {
      s = trimmed(s)
      while (s ~ /^template ?</) s = without_template(s)
      gsub(/\[\[[^]]*\]\]/, "", s)
      gsub(/(^| )alignas ?\([^()]*\)/, "", s)
      gsub(/ [A-Z][A-Z_]+[A-Z] ?\(([^()]|\([^()]*\))*\)/, " ", s)
      return trimmed(s)
    }
    # How many names the declaration has; 0: it is a function.
    function names_in(s,    i, c, before, open, angles, in_value, n) {
      if (s ~ /(^|[ &*])operator[^A-Za-z0-9_]/) return 0
      n = 1
      for (i = 1; i <= length(s); ++i) {
        c = substr(s, i, 1)
        if (c == "<" && before ~ /[A-Za-z0-9_]/ && substr(s, i + 1, 1) !~ /[<=]/) ++angles
        else if (c == ">" && angles > 0) --angles
        else if (c == "(" && !open && !angles && !in_value) return 0
        else if (c ~ /[[({]/) ++open
        else if (c ~ /[])}]/) --open
        else if (c == "=" && !open && !angles) in_value = 1
        else if (c == "," && !open && !angles) {
          ++n
          in_value = 0
        }
        if (c != " ") before = c
      }
      return n
    }
    function members_in(s,    n) {
      s = plain(s)
      if (s == "" || s ~ /^(using|typedef|friend|static_assert|enum|concept)( |\(|$)/) return 0
      if (s ~ /^(class|struct|union) [A-Za-z0-9_:]+$/ || s ~ /= ?(default|delete)$/) return 0
      n = names_in(s)
      if (n == 0) return 1
      return s ~ /(^| )static / && s ~ /(^| )const(expr)? / ? 0 : n
    }
    function end_declaration() {
      if (is_class[depth] && access[depth] != "public") private_members[depth] += members_in(text[depth])
      text[depth] = ""
      is_over[depth] = 0
    }
    function add(s) {
      if (is_over[depth] && s ~ /[^ \t]/) {
        if (s ~ /^[ \t]*,/) is_over[depth] = 0
        else end_declaration()
      }
      text[depth] = text[depth] s
    }
    function without_arguments(s) {
      while (gsub(/<[^<>]*>/, "", s)) continue
      return s
    }
    # Of the class whose head this is; "-": it is none.
    function name_in(s) {
      s = plain(s)
      if (s ~ /^requires/ && match(s, /[>)] (class|struct) /)) s = substr(s, RSTART + 2)
      if (s !~ /^(class|struct|union)( |$)/ || without_arguments(s) ~ /[()=]/) return "-"
      sub(/^(class|struct|union) ?/, "", s)
      while (s ~ /^[A-Z][A-Z_]+ /) sub(/^[A-Z_]+ /, "", s)
      gsub(/::/, "@", s)
      sub(/ ?:.*/, "", s)
      gsub(/@/, "::", s)
      sub(/ final$/, "", s)
      return s
    }
    # Whether all of the class in scope d counts.
    function is_hidden(d, is_struct) {
      if (name[d] ~ /(^|::)Impl$/) return 1
      return is_struct && (name[d] ~ /::/ || is_anonymous[d - 1] || (is_class[d - 1] && access[d - 1] != "public"))
    }
    function open_scope(    its_name, is_struct) {
      is_struct = plain(text[depth]) !~ /(^|[>)] )class /
      its_name = parens[depth] == 0 ? name_in(text[depth]) : "-"
      is_over[depth] = 0
      ++depth
      is_anonymous[depth] = plain(text[depth - 1]) == "namespace"
      if (plain(text[depth - 1]) ~ /^(inline )?namespace /) is_anonymous[depth] = is_anonymous[depth - 1]
      text[depth] = ""
      parens[depth] = is_over[depth] = is_class[depth] = private_members[depth] = 0
      if (its_name == "-") return
      is_class[depth] = 1
      name[depth] = its_name
      head[depth] = FNR
      hidden[depth] = is_hidden(depth, is_struct)
      access[depth] = is_struct && !hidden[depth] ? "public" : "private"
    }
    function full_name(d,    i, full) {
      for (i = 1; i <= d; ++i) {
        if (is_class[i]) full = full (full == "" ? "" : "::") (name[i] == "" ? "(nameless)" : name[i])
      }
      return full
    }
    function end_class(d) {
      if (name[d] == "" && is_class[d - 1] && access[d - 1] != "public") private_members[d - 1] += private_members[d]
      if (private_members[d] <= limit_of(full_name(d))) return
      complain(FILENAME ":" head[d], full_name(d) " has " private_members[d] \
               " private and protected members and functions, and " limit_of(full_name(d)) " are the most")
    }
    function close_scope() {
      if (depth == 0) return complain(FILENAME ":" FNR, "a bracket closes that was not opened")
      end_declaration()
      --depth
      if (is_class[depth + 1]) {
        end_class(depth + 1)
        text[depth] = "type"  # what follows, if anything, is the name of a member of this type
      } else {
        text[depth] = text[depth] "{}"
        is_over[depth] = parens[depth] == 0 && (!is_class[depth] || names_in(plain(text[depth])) == 0)
      }
    }
    function take(token) {
      if (token == "{") open_scope()
      else if (token == "}") close_scope()
      else if (token == ";" && parens[depth] == 0) {
        if (trimmed(text[depth]) == "type") text[depth] = ""
        end_declaration()
      } else if (token == ":" && is_class[depth] && trimmed(text[depth]) ~ /^(public|protected|private)$/) {
        access[depth] = hidden[depth] ? "private" : trimmed(text[depth])
        text[depth] = ""
      } else {
        add(token)
        if (token ~ /[[(]/) ++parens[depth]
        if (token ~ /[])]/) --parens[depth]
      }
    }
    # The line without comments, directives, and what its literals say.
    function code_of(s,    at) {
      if (in_directive || (s ~ /^[ \t]*#/ && until == "")) {
        in_directive = s ~ /\\$/
        return ""
      }
      return without_literals(s)
    }
    function without_literals(s,    out, found, at) {
      for (;;) {
        if (until != "") {  # inside of a comment or literal of several lines
          at = index(s, until)
          if (at == 0) return out
          s = substr(s, at + length(until))
          until = ""
        }
        if (!match(s, literal_or_comment)) return out s
        found = substr(s, RSTART, RLENGTH)
        out = out substr(s, 1, RSTART - 1)
        if (found == "//") return out
        if (found ~ /^[0-9]/) {  # between the digits of a number
          at = index(found, "\047")
          out = out substr(found, 1, at - 1)
          s = substr(s, RSTART + at)
          continue
        }
        if (found == "/*") until = "*/"
        else if (found ~ /^R"/) until = ")" substr(found, 3, length(found) - 3) "\""
        out = out (found == "/*" ? " " : "\"\"")
        s = substr(s, RSTART + RLENGTH)
      }
    }
    function end_file() {
      if (depth == 0 && parens[0] == 0 && until == "") return
      complain(file, "its brackets do not match, so its classes cannot be measured")
    }
    FNR == 1 {
      if (NR > 1) end_file()
      file = FILENAME
      depth = parens[0] = is_over[0] = is_class[0] = is_anonymous[0] = in_directive = 0
      text[0] = until = ""
    }
    {
      rest = code_of($0) " "
      while (match(rest, /[][(){};:]/)) {
        if (RSTART > 1) add(substr(rest, 1, RSTART - 1))
        token = substr(rest, RSTART, 1)
        if (substr(rest, RSTART, 2) == "::") {
          add("::")
          rest = substr(rest, RSTART + 2)
        } else {
          rest = substr(rest, RSTART + 1)
          take(token)
        }
      }
      add(rest)
    }
    END {
      end_file()
      exit failed
    }'
