#!/usr/bin/env bash
# class_size_lint_test.sh SOURCE_DIR: class_size_lint.sh finds every class, counts its private members as it should, and
# refuses those that have too many.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree/longhaul/base"

# counts NAME "CLASS COUNT" ... <<FILE: in that file, these classes have so many.
counts() {
  local what=$1 said
  shift
  rm -f "$tree"/longhaul/base/*
  cat >"$tree/longhaul/base/a.h"
  said=$(bash "$lint" "$tree" 0 | sed -n 's/^longhaul.base.a.h:[0-9]*: \(.*\) has \([0-9]*\) private.*/\1 \2/p') || true
  [[ $said == "$(printf '%s\n' "$@")" ]] || failed "$what: said '$said', and it should be '$*'"
}

counts "data and functions" "Thing 7" <<'FILE'
class Thing {
 public:
  Thing();
  int size() const { return size_; }

 private:
  explicit Thing(int size) : size_(size), name_{"x"} {}
  ~Thing();
  void grow(int by, int to);
  void grow(double by);
  bool operator==(const Thing& other) const;
  int size_ = 0;
  std::string name_;
};
FILE

counts "what does not count" "Thing 1" <<'FILE'
class Other;
class Thing {
  using Names = std::vector<std::string>;
  typedef int Number;
  friend class Other;
  friend bool operator==(const Thing& a, const Thing& b) { return a.size_ == b.size_; }
  enum class State { kOpen, kClosed };
  class Later;
  static_assert(sizeof(int) == 4);
  static constexpr int kMost = 3, kLeast = (1 + 1) * 0;
  static const std::string kName;
  static constexpr std::array<int, 2> kPair = {1, 2};
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;
  Thing() = default;
  template <typename T>
  using List = std::vector<T>;
  int size_;
};
FILE

counts "what does, though it looks alike" "Thing 4" <<'FILE'
class Thing {
  static constexpr int twice(int n) { return 2 * n; }
  static const Thing& the_only_one();
  static int made_;
  const std::string name_;
};
FILE

counts "several sections" "Thing 5" <<'FILE'
class Thing {
  int before_;

 public:
  int open;

 private:
  int between_;

 protected:
  int inherited_;
  void inherited();

 private:
  int after_;
};
FILE

counts "declarations of several lines, names and initializers" "Thing::Line 2" "Thing 14" <<'FILE'
class Thing {
 private:
  std::map<std::string, std::pair<int, int>> a_;
  size_t b_ = 0, c_ = size_t{1} << 4,
         d_{4};
  int* e_ = nullptr, f_[2] = {1, 2};
  std::atomic<bool> g_ GUARDED_BY(mutex_){false};
  std::function<void(int, int)> h_ = [](int a, int b) {
    if (a < b) return;
  };
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& why) const REQUIRES(mutex_);
  template <typename A, typename B = std::pair<A, int>>
  void use(const A& a,
           const B& b = {});
  struct alignas(64) Line {
    int a, b;
  };
  alignas(64) std::atomic<int> i_ = 0;
  alignas(64) Line line_;
  const Options options_{.first = 1, .second = {2, 3}};
  std::vector<int> (*make_)(int, int);
};
FILE

counts "nested classes, each for itself" "Outer::Inner 1" "Outer::Shown::Deep 2" "Outer::Shown 1" "Outer 3" <<'FILE'
class Outer {
 public:
  class Inner {
   public:
    int shown;

   private:
    int hidden_;
  };
  struct Shown {
    int a, b;

   private:
    struct Deep {
      int c, d;
    };
    Deep deep_;
  };

 private:
  Inner inner_;
  Shown shown_;
  int size_;
};
FILE

counts "a struct that only one class sees: all of it" \
  "Owner::State 3" "Owner 2" "Owner::Run 2" "Owner::Helper 1" <<'FILE'
class Owner {
  struct State {
    void clear();
    int a = 0, b = 0;
  };
  State state_;
  struct Run;
  class Helper;
  std::unique_ptr<Run> run_;
};
struct Owner::Run {
  int a;
  void run() {}
};
class Owner::Helper : public Base {
 public:
  void help() override;

 private:
  int a_;
};
FILE

counts "Impl: all of it" "Owner::Impl 4" "Impl 2" <<'FILE'
class Owner::Impl {
 public:
  Impl();
  void run();

 private:
  int a_, b_;
};
struct Impl {
  int a, b;
};
FILE

counts "templates, bases, macros and attributes" \
  "Pair 1" "hash<Pair> 1" "Bound 1" "Guard 1" "Lock 1" "Old 1" <<'FILE'
template <typename A, template <typename> class B = std::vector>
class Pair : public std::map<A, int>, private std::function<int(A, B<A>)> {
  int a_;
};
template <>
class hash<Pair> {
  int b_;
};
template <typename T, std::convertible_to<int>... Ts>
  requires Holds<T, sizeof...(Ts)>
class Bound final : public T {
  int c_;
};
class LONGHAUL_ANNOTATION(capability("mutex")) Guard {
  int d_;
};
class SCOPED_LOCKABLE Lock {
  int e_;
};
class [[deprecated]] Old {
  int f_;
};
FILE

counts "namespaces, functions and their local classes" "Values 3" "Local 2" "Last 1" <<'FILE'
namespace longhaul::base {
namespace {
struct Values {
  int a, b, c;
};
template <class T>
void run(T t = {}, int n = (1 < 2) ? 3 : 4) {
  if (n > 3) {
    switch (n) {
      case 4: return;
      default: break;
    }
  }
  class Local {
    int a_;
    int b_;
  };
  const auto call = [&](int m) { return m; };
  call({});
}
enum class Kind { kOne, kTwo };
class Last {
  int a_;
};
}  // namespace
}  // namespace longhaul::base
FILE

counts "a struct that only one file sees: all of it" "State 4" "Deep 2" "Row::Cell 2" "Row 2" "Window 1" <<'FILE'
namespace longhaul {
struct Seen {
  int a, b;
};
namespace {
struct State {
  void clear();
  int a = 0, b = 0;

 protected:
  int c = 0;
};
namespace detail {
struct Deep {
  int a, b;
};
}  // namespace detail
struct Row {
  struct Cell {
    int a, b;
  };
  Cell cell;
  int number;
};
class Window {
 public:
  int open;

 private:
  int shut_;
};
}  // namespace
struct SeenToo {
  int a, b;
};
}  // namespace longhaul
FILE

counts "comments, literals and directives" "Thing 3" <<'FILE'
#define OPEN(x) class x { \
  int hidden_;
// class Comment { int a_; };
/* class Block {
  int a_; */
class Thing {
  const char open_ = '{', quote_ = '"';
  void say() { log("}; class Not {", '\'', 1'000'000, R"(}
};)", R"x(" } )" )x"); }  // }
#if defined(__clang__)
  /* int a_; */
#endif
};
FILE

counts "an anonymous struct is its owner's" "Thing::(nameless) 2" "Thing 3" <<'FILE'
class Thing {
  struct {
    int a, b;
  } both_;
};
FILE

members() {
  rm -f "$tree"/longhaul/base/*
  { printf '\nclass Thing {\n'; printf '  int m%s_;\n' $(seq "$1"); printf '};\n'; } >"$tree/longhaul/base/$2"
}
members 25 a.h
bash "$lint" "$tree" || failed "25 are allowed"
members 26 a.cc
said=$(bash "$lint" "$tree") && failed "26 are too many"
[[ $said == "longhaul/base/a.cc:2: Thing has 26 private and protected members"* ]] || failed "said '$said'"
mkdir "$tree"/{benchmarks,tests}
mv "$tree/longhaul/base/a.cc" "$tree/benchmarks"
bash "$lint" "$tree" >/dev/null && failed "26 are too many in a benchmark"
mv "$tree/benchmarks/a.cc" "$tree/tests"
bash "$lint" "$tree" || failed "tests/ is left out"
for name in a_test.cc a_fixture.h a_fixture.cc; do
  members 26 $name
  bash "$lint" "$tree" || failed "$name is a test's"
done
members 20 a.h
sed -i s/Thing/Supervisor/ "$tree/longhaul/base/a.h"
bash "$lint" "$tree" || failed "20 are allowed for Supervisor"
members 21 a.h
sed -i s/Thing/Supervisor/ "$tree/longhaul/base/a.h"
said=$(bash "$lint" "$tree") && failed "21 are too many for Supervisor"
[[ $said == *"Supervisor has 21 private and protected members and functions, and 20 are the most" ]] ||
  failed "said '$said'"
printf 'class Thing {\n  void f() {\n};\n' >"$tree/longhaul/base/a.h"
said=$(bash "$lint" "$tree") && failed "a file that it cannot read is none without large classes"
[[ $said == "longhaul/base/a.h: its brackets do not match"* ]] || failed "said '$said'"
echo "the lint counts as it should"
