#!/usr/bin/env bash
# include_lint.sh SOURCE_DIR: each header reaches, through its own includes and those of our headers that it includes,
# a header of the standard library for every name of it that it uses. No header but longhaul/torch.h includes all of
# libtorch's operators: <ATen/core/Tensor.h> and the operators' own headers (<ATen/ops/empty.h>) do.
#
# Each header is compiled alone (headers.cmake), with the system's headers precompiled, which makes it seven times
# shorter; what only the precompiled header would have brought along is found here. A name that the table does not know
# is a failure: put it there.
#
# And each source that has a header of its name begins with it: its first directive is this include, and no other stands
# in the next line. So a header is alone there.
#
# Nothing asks for libtorch's version, but for one header: where its versions differ, a type trait tells.
set -euo pipefail
cd "$1"
status=0

find longhaul -name '*.cc' ! -name '*_test.cc' -print | LC_ALL=C sort |
  xargs awk '
    BEGIN {
      while (("find longhaul -name \"*.h\"" | getline header) > 0) is_header[header] = 1
    }
    function complain(source, header) {
      print source ":1: #include \"" header "\" is not the first directive, with an empty line after it"
      failed = 1
    }
    FNR == 1 {
      if (waits) complain(source, own)
      own = source = FILENAME
      sub(/\.cc$/, ".h", own)
      waits = own in is_header
      after = 0
    }
    waits && /^[ \t]*#/ {
      waits = 0
      if ($0 == "#include \"" own "\"") after = FNR + 1
      else complain(source, own)
      next
    }
    FNR == after && $0 != "" { complain(source, own) }
    END {
      if (waits) complain(source, own)
      exit failed
    }' || status=1

find longhaul -name '*.h' ! -name '*_internal.h' ! -name '*_test.h' ! -name '*_fixture.h' -print | LC_ALL=C sort |
  xargs awk '
    # Any of `headers` has the names. What the common containers bring along by the standard, or in every library,
    # counts.
    function in_header(headers, names,    n, words, i) {
      n = split(names, words, " ")
      for (i = 1; i <= n; i++) home[words[i]] = headers
    }
    BEGIN {
      containers = "array deque functional map memory optional set span string string_view unordered_map " \
          "unordered_set variant vector"
      in_header("utility " containers, "std::move std::forward std::pair std::make_index_sequence " \
          "std::index_sequence std::exchange std::make_pair std::swap std::as_const std::declval")
      in_header("string", "std::string std::to_string std::stoi std::stoll")
      in_header("string_view string", "std::string_view")
      in_header("vector", "std::vector")
      in_header("array", "std::array")
      in_header("deque", "std::deque")
      in_header("map", "std::map std::multimap")
      in_header("set", "std::set std::multiset")
      in_header("unordered_map", "std::unordered_map")
      in_header("unordered_set", "std::unordered_set")
      in_header("span", "std::span")
      in_header("optional", "std::optional std::nullopt std::nullopt_t std::make_optional")
      in_header("variant", "std::variant std::monostate std::get_if std::holds_alternative std::visit")
      in_header("variant tuple utility array map", "std::get")
      in_header("tuple", "std::tuple std::tie std::make_tuple")
      in_header("tuple utility array", "std::tuple_size")
      in_header("memory", "std::shared_ptr std::unique_ptr std::weak_ptr std::make_shared std::make_unique " \
          "std::enable_shared_from_this")
      in_header("functional", "std::function std::invoke std::plus std::minus")
      in_header("functional map set memory", "std::less std::greater")
      in_header("functional string string_view memory optional variant", "std::hash")
      in_header("exception", "std::uncaught_exceptions")
      in_header("cstdio", "std::FILE")
      in_header("exception stdexcept", "std::exception std::exception_ptr std::current_exception " \
          "std::rethrow_exception std::make_exception_ptr")
      in_header("stdexcept", "std::runtime_error std::logic_error")
      in_header("system_error charconv", "std::errc std::error_code")
      in_header("atomic", "std::atomic std::memory_order_relaxed std::memory_order_acquire std::memory_order_release")
      in_header("shared_mutex", "std::shared_mutex std::shared_lock")
      in_header("mutex", "std::mutex std::recursive_mutex std::lock_guard std::unique_lock std::scoped_lock " \
          "std::call_once std::once_flag")
      in_header("condition_variable", "std::condition_variable std::condition_variable_any")
      in_header("thread", "std::thread std::this_thread std::jthread")
      in_header("chrono", "std::chrono")
      in_header("filesystem", "std::filesystem")
      in_header("concepts", "std::integral std::invocable std::convertible_to std::same_as std::floating_point " \
          "std::derived_from")
      in_header("type_traits concepts " containers, "std::is_same_v std::is_void_v std::is_integral_v " \
          "std::is_floating_point_v std::is_arithmetic_v std::is_convertible_v std::decay_t std::invoke_result_t " \
          "std::type_identity_t " \
          "std::enable_if_t std::conditional_t std::remove_cvref_t std::is_enum_v std::underlying_type_t " \
          "std::is_invocable_v std::true_type std::false_type std::is_base_of_v std::is_aggregate_v " \
          "std::is_constructible_v std::is_signed_v std::is_trivially_copyable_v std::remove_reference_t " \
          "std::is_const_v std::is_lvalue_reference_v std::is_pointer_v")
      in_header("initializer_list " containers, "std::initializer_list")
      in_header("complex", "std::complex")
      in_header("cstring", "std::memcpy std::memset std::memcmp std::strlen")
      in_header("cstdlib", "std::strtod std::strtoll std::getenv std::abort")
      in_header("cmath", "std::sqrt std::isnan std::isfinite std::abs std::exp std::log std::pow std::cos std::floor")
      in_header("algorithm", "std::max std::min std::sort std::copy std::clamp std::find std::find_if std::any_of " \
          "std::all_of std::none_of std::lower_bound std::upper_bound std::transform")
      in_header("numeric", "std::accumulate std::iota")
      in_header("random", "std::mt19937_64 std::mt19937 std::uniform_random_bit_generator")
      in_header("charconv", "std::from_chars std::to_chars")
      in_header("bit", "std::bit_cast std::endian std::bit_ceil std::countl_zero")
      in_header("deque map set string unordered_map unordered_set vector", "std::erase std::erase_if")
      in_header("iterator " containers, "std::begin std::end std::size std::back_inserter std::make_move_iterator " \
          "std::input_iterator_tag std::default_sentinel_t " \
          "std::next")
      in_header("limits", "std::numeric_limits")
      in_header("ostream iostream iosfwd string", "std::ostream")
      in_header("istream iostream iosfwd sstream", "std::istream")
      in_header("sstream", "std::ostringstream std::istringstream")
      in_header("locale", "std::locale")
      in_header("typeinfo", "std::type_info")
      in_header("cstdint atomic " containers, "int64_t")
      in_header("cstddef " containers, "std::size_t std::nullptr_t std::byte std::ptrdiff_t")
      in_header("new memory", "std::align_val_t std::nothrow")
      in_header("google/protobuf/message.h google/protobuf/message_lite.h google/protobuf/descriptor.h " \
          "google/protobuf/io/coded_stream.h longhaul/proto", "google::protobuf")
      in_header("fmt/format.h fmt/core.h fmt/ranges.h", "fmt::format fmt::formatter fmt::format_to fmt::print " \
          "fmt::format_string fmt::string_view fmt::appender")
    }
    FNR == 1 { files[++n_files] = FILENAME }
    {
      line = $0
      if (line ~ /^[ \t]*#[ \t]*include[ \t]*["<]/) {
        path = line
        sub(/^[^"<]*["<]/, "", path)
        sub(/[">].*/, "", path)
        includes[FILENAME] = includes[FILENAME] " " path
        if (path ~ /^(ATen\/(ATen|Functions)|torch\/(torch|all))\.h$/ && FILENAME != "longhaul/torch.h") {
          print FILENAME ":" FNR ": <" path "> has all of libtorch; <ATen/core/Tensor.h> or <ATen/ops/OPERATOR.h> does"
          failed = 1
        }
        next
      }
      sub(/\/\/.*/, "", line)
      gsub(/"([^"\\]|\\.)*"/, "", line)
      while (match(line, /(std|fmt)::[a-zA-Z_0-9]+|google::protobuf|u?int(8|16|32|64)_t/)) {
        name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (name ~ /int[0-9]+_t$/) name = "int64_t"
        if (!((FILENAME, name) in seen)) {
          seen[FILENAME, name] = FNR
          names[FILENAME] = names[FILENAME] " " name
        }
      }
    }
    # What `file` includes, itself and through our own headers, into reached[file, header].
    function reach(root, file,    n, paths, i) {
      if ((root, "visited", file) in reached) return
      reached[root, "visited", file] = 1
      n = split(includes[file], paths, " ")
      for (i = 1; i <= n; i++) {
        reached[root, paths[i]] = 1
        if (paths[i] ~ /\.pb\.h$/) reached[root, "longhaul/proto"] = 1
        else if (paths[i] ~ /^longhaul\//) reach(root, paths[i])
      }
    }
    function is_reached(file, headers,    n, words, i) {
      n = split(headers, words, " ")
      for (i = 1; i <= n; i++) if ((file, words[i]) in reached) return 1
      return 0
    }
    END {
      for (f = 1; f <= n_files; f++) {
        file = files[f]
        reach(file, file)
        n = split(names[file], used, " ")
        for (i = 1; i <= n; i++) {
          where = file ":" seen[file, used[i]] ": "
          if (!(used[i] in home)) {
            print where used[i] " has no header in the table of tests/include_lint.sh"
            failed = 1
          } else if (!is_reached(file, home[used[i]])) {
            split(home[used[i]], first, " ")
            print where used[i] " is used without #include <" first[1] ">"
            failed = 1
          }
        }
      }
      exit failed
    }' || status=1

grep -rnE '^[[:space:]]*#.*TORCH_(VERSION|ABI_VERSION)' --include='*.h' --include='*.cc' --exclude-dir=build . |
  grep -v '^\./longhaul/binding/torch_versions_fixture\.h:' |
  sed 's,^\./,,; s/:[^:]*#.*/: asks for the version of libtorch; take a type trait/' | grep . && status=1

exit $status
