#include "longhaul/runtime/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ChooseThreads, OneWhereOpenBlasHasItsOwn) {
  const ThreadChoice choice =
      choose_threads({.libtorch = 8, .by_default = 8, .usable = 8, .blas_has_own_threads = true});
  EXPECT_EQ(choice.threads, 1);
  EXPECT_THAT(choice.why, AllOf(HasSubstr("1 thread;"), HasSubstr("8 processors"), HasSubstr("OpenBLAS"),
                                HasSubstr("set_intra_op_threads()")));
}

TEST(SetThreads, ManyMoreThanProcessorsAreRefused) {
  try {
    set_intra_op_threads(100'000);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("at most 1024 threads, not 100000"), HasSubstr("set_intra_op_threads()")));
  }
}

TEST(ChooseThreads, AllProcessorsThatMayBeUsedElse) {
  const ThreadChoice choice = choose_threads({.libtorch = 64, .by_default = 64, .usable = 6});
  EXPECT_EQ(choice.threads, 6);
  EXPECT_EQ(choice.why, "each operation uses 6 threads; the process may use 6 processors");
}

TEST(ChooseThreads, OneForEachCoreWhereEachHasTwoProcessors) {
  EXPECT_EQ(choose_threads({.libtorch = 4, .by_default = 4, .usable = 8}).threads, 4);
}

TEST(ChooseThreads, OneForEachProcessorWhereLibtorchSeesASingleCore) {
  EXPECT_EQ(choose_threads({.libtorch = 1, .by_default = 1, .usable = 2}).threads, 2);
}

TEST(ChooseThreads, OpenBlasIsSetThoughLibtorchUsesOneThreadByItself) {
  const ThreadChoice choice =
      choose_threads({.libtorch = 1, .by_default = 1, .usable = 2, .blas_has_own_threads = true});
  EXPECT_EQ(choice.threads, 1);
  EXPECT_THAT(choice.why, HasSubstr("OpenBLAS"));
}

TEST(ChooseThreads, NothingWhereTheProgramHasChosen) {
  const ThreadChoice choice =
      choose_threads({.libtorch = 3, .by_default = 8, .usable = 8, .blas_has_own_threads = true});
  EXPECT_EQ(choice.threads, 0);
  EXPECT_THAT(choice.why, HasSubstr("3 threads"));
}

TEST(ChooseThreads, NothingWhereTheEnvironmentSaysIt) {
  const ThreadChoice choice = choose_threads(
      {.libtorch = 8, .by_default = 8, .usable = 8, .blas_has_own_threads = true, .said_by = "OMP_NUM_THREADS"});
  EXPECT_EQ(choice.threads, 0);
  EXPECT_THAT(choice.why, AllOf(HasSubstr("8 threads"), HasSubstr("OMP_NUM_THREADS is set")));
}

TEST(ChooseThreads, WhereTwoPoolsCompeteAWarningHasTheRemedy) {
  ThreadFacts facts{.libtorch = 2, .by_default = 2, .usable = 2, .blas_has_own_threads = true, .blas = 2};
  EXPECT_EQ(choose_threads(facts).warning, "") << "one thread is chosen";
  facts.said_by = "OMP_NUM_THREADS";
  EXPECT_EQ(choose_threads(facts).warning,
            "libtorch has 2 threads and OpenBLAS has 2 of its own (OMP_NUM_THREADS is set). They compete, so steps may "
            "take 5 to 50 times as long. To use a single pool, unset it, or set OPENBLAS_NUM_THREADS=1");
  facts.said_by = "OPENBLAS_NUM_THREADS";
  EXPECT_THAT(choose_threads(facts).warning, HasSubstr("unset it, or set it to 1"));
  facts.said_by.clear();
  facts.by_default = 8;
  EXPECT_THAT(choose_threads(facts).warning, HasSubstr("(as set by the program)"));
}

TEST(ChooseThreads, OnePoolIsNothingToWarnOf) {
  const ThreadFacts facts{.libtorch = 2,
                          .by_default = 2,
                          .usable = 2,
                          .blas_has_own_threads = true,
                          .blas = 2,
                          .said_by = "OMP_NUM_THREADS"};
  ThreadFacts changed = facts;
  changed.libtorch = 1;
  EXPECT_EQ(choose_threads(changed).warning, "");
  changed = facts;
  changed.blas = 1;
  EXPECT_EQ(choose_threads(changed).warning, "");
  changed = facts;
  changed.blas_has_own_threads = false;
  EXPECT_EQ(choose_threads(changed).warning, "");
}

TEST(SetIntraOpThreads, LogsANumberThatIsNewAndNoOther) {
  std::string text;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& line) {
    if (level == LogLevel::kInfo) text += line + "\n";
  });
  for (const int threads : {2, 2, 1, 1}) set_intra_op_threads(threads);
  set_log_sink(before);
  EXPECT_EQ(text,
            "each operation uses 2 threads from now on, as set by the program\n"
            "each operation uses 1 thread from now on, as set by the program\n");
}

TEST(ChooseThreads, OneProcessorIsNoChoice) {
  EXPECT_EQ(choose_threads({.blas_has_own_threads = true}).why,
            "each operation uses 1 thread; the process may use 1 processor");
}

}  // namespace
}  // namespace longhaul
