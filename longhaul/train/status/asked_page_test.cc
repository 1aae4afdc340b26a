#include "longhaul/train/status/asked_page.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "longhaul/base/log.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AskedPageTest : public ::testing::Test {
 protected:
  ~AskedPageTest() override {
    for (const char* name : {"LONGHAUL_STATUS_ADDRESS", "LONGHAUL_STATUS_TOKEN_FILE", "LONGHAUL_STATUS_ALLOWED_HOSTS"})
      ::unsetenv(name);
  }
};

TEST_F(AskedPageTest, NobodyAsksForOne) {
  const LogRecorder log;
  EXPECT_THAT(asked_page({.last_step = 7}).options.address, IsEmpty());
  EXPECT_THAT(log.text(LogLevel::kWarning), IsEmpty());
  ::setenv("LONGHAUL_STATUS_TOKEN_FILE", "/secrets/token", 1);
  EXPECT_THAT(asked_page({}).options.address, IsEmpty());
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("LONGHAUL_STATUS_TOKEN_FILE is set in vain"));
}

TEST_F(AskedPageTest, WhoeverStartsTheProgramMayWhereItDoesNot) {
  ::setenv("LONGHAUL_STATUS_ADDRESS", "0.0.0.0:8080", 1);
  ::setenv("LONGHAUL_STATUS_TOKEN_FILE", "/secrets/token", 1);
  ::setenv("LONGHAUL_STATUS_ALLOWED_HOSTS", "a.example.org,,b.example.org", 1);
  const AskedPage asked = asked_page({.allowed_hosts = {"own"}, .last_step = 7});
  EXPECT_EQ(asked.options.address, "0.0.0.0:8080");
  EXPECT_EQ(asked.options.token_file, "/secrets/token");
  EXPECT_THAT(asked.options.allowed_hosts, ElementsAre("own", "a.example.org", "b.example.org"));
  EXPECT_EQ(asked.options.last_step, 7);
  EXPECT_EQ(asked.names.address, "LONGHAUL_STATUS_ADDRESS");
}

TEST_F(AskedPageTest, TheProgramsOwnIsLeftAsItIs) {
  ::setenv("LONGHAUL_STATUS_ADDRESS", "0.0.0.0:8080", 1);
  ::setenv("LONGHAUL_STATUS_TOKEN_FILE", "/secrets/token", 1);
  const LogRecorder log;
  const AskedPage asked = asked_page({.address = "127.0.0.1:0"});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("LONGHAUL_STATUS_ADDRESS is set in vain"));
  EXPECT_EQ(asked.options.address, "127.0.0.1:0");
  EXPECT_THAT(asked.options.token_file, IsEmpty());
  EXPECT_EQ(asked.names.address, "chief.status.address");
}

}  // namespace
}  // namespace longhaul
