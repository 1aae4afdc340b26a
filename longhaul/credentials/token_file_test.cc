#include "longhaul/credentials/token_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>

#include "longhaul/base/log.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kFirstToken(32, 'a'), kOtherToken(40, 'b');

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest() {
    put(kFirstToken + "\n");
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      if (level == LogLevel::kError) errors_.push_back(message);
    });
  }
  ~TokenFileTest() override { set_log_sink(before_); }

  void put(const std::string& text, mode_t mode = 0600) {
    write_file_atomically(FileSystem::real(), path_, text);
    set_mode(mode);
  }
  void set_mode(mode_t mode) { EXPECT_EQ(::chmod(path_.c_str(), mode), 0); }

  testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("token");
  testing::FakeClock clock_;
  std::vector<std::string> errors_;
  LogSink before_;
};

TEST_F(TokenFileTest, AcceptsItsTokenAndNothingElse) {
  TokenFile file(path_, clock_);
  EXPECT_EQ(file.token(), kFirstToken);
  EXPECT_TRUE(file.accepts(kFirstToken));
  for (const std::string& other : {std::string(), kFirstToken + "a", kFirstToken.substr(1), kFirstToken + "\n",
                                   std::string(32, 'c'), kFirstToken.substr(1) + "b"}) {
    EXPECT_FALSE(file.accepts(other)) << other;
  }
}

TEST_F(TokenFileTest, SendsTheFirstLineAndAcceptsAll) {
  put(kFirstToken + "\r\n\n" + kOtherToken);
  TokenFile file(path_, clock_);
  EXPECT_EQ(file.token(), kFirstToken);
  EXPECT_TRUE(file.accepts(kOtherToken));
  EXPECT_FALSE(file.accepts(""));
}

TEST_F(TokenFileTest, IsReadAgainWhenItHasChanged) {
  TokenFile file(path_, clock_);
  struct stat before{};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  put(kOtherToken);
  const std::array<timespec, 2> times{before.st_atim, before.st_mtim};  // as `cp -p` leaves it
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times.data(), 0), 0);
  EXPECT_TRUE(file.accepts(kFirstToken)) << "it has just looked";
  clock_.advance(Seconds{1.5});
  EXPECT_TRUE(file.accepts(kOtherToken));
  EXPECT_FALSE(file.accepts(kFirstToken));
  EXPECT_EQ(file.token(), kOtherToken);
}

TEST_F(TokenFileTest, KeepsItsTokensWhenTheNewOnesAreUnusable) {
  TokenFile file(path_, clock_);
  put("\n");
  for (int i = 0; i < 3; ++i) {
    clock_.advance(Seconds{1.5});
    EXPECT_TRUE(file.accepts(kFirstToken));
  }
  EXPECT_THAT(errors_, ElementsAre(AllOf(HasSubstr("stay valid"), HasSubstr(path_), HasSubstr("no token in it"))));
  FileSystem::real().remove(path_);
  clock_.advance(Seconds{1.5});
  EXPECT_EQ(file.token(), kFirstToken);
  EXPECT_THAT(errors_, SizeIs(2));
  put(kOtherToken);
  clock_.advance(Seconds{1.5});
  EXPECT_EQ(file.token(), kOtherToken);
}

TEST_F(TokenFileTest, ARenewedFileThatOthersMayReadIsRefusedUntilItIsPrivate) {
  TokenFile file(path_, clock_);
  put(kOtherToken, 0644);
  for (int i = 0; i < 3; ++i) {
    clock_.advance(Seconds{1.5});
    EXPECT_TRUE(file.accepts(kFirstToken));
    EXPECT_FALSE(file.accepts(kOtherToken));
  }
  EXPECT_THAT(errors_, ElementsAre(AllOf(HasSubstr("stay valid"), HasSubstr("mode 0644"),
                                         HasSubstr("chmod 600 " + path_), Not(HasSubstr(kOtherToken)))));
  set_mode(0600);
  clock_.advance(Seconds{1.5});
  EXPECT_EQ(file.token(), kOtherToken);
  EXPECT_FALSE(file.accepts(kFirstToken));
}

TEST_F(TokenFileTest, AFileThatOthersMayReadIsAnErrorAtTheStart) {
  set_mode(0640);
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { TokenFile(path_, clock_); }), HasSubstr("chmod 600"));
}

TEST_F(TokenFileTest, RefusesWhatIsNoToken) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { parse_tokens("/x/token", text); }); };
  EXPECT_THAT(refusal(kFirstToken), IsEmpty());
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("/x/token: there is no token in it"), HasSubstr("openssl rand -hex 32")));
  EXPECT_THAT(refusal("\n\n"), HasSubstr("no token"));
  EXPECT_THAT(refusal("hunter2"), AllOf(HasSubstr("line 1 has 7 letters"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(refusal(kFirstToken + "\n" + std::string(2000, 'a')), HasSubstr("line 2 has 2000 letters"));
  EXPECT_THAT(refusal("a token with spaces"), HasSubstr("a space"));
  EXPECT_THAT(refusal(kFirstToken + '\0'), HasSubstr("not printable ASCII"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += kFirstToken + "\n";
  EXPECT_THAT(refusal(many), HasSubstr("more than 16"));
}

TEST_F(TokenFileTest, AMissingFileIsAnErrorAtTheStart) {
  FileSystem::real().remove(path_);
  EXPECT_THROW(TokenFile(path_, clock_), NotFoundError);
}

}  // namespace
}  // namespace longhaul
