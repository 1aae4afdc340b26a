// The program `longhaul`, as a user meets it.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LonghaulProgram : public ::testing::Test {
 protected:
  LonghaulProgram() { put("cluster.json", R"({"ps": ["127.0.0.1:2222"], "worker": ["10.0.0.4:2223"]})"); }

  std::string path(const std::string& name) const { return directory_.file(name); }
  void put(const std::string& name, const std::string& text) {
    write_file_atomically(FileSystem::real(), path(name), text);
  }

  // The exit status; what it says is in out_ and err_.
  int longhaul(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{LONGHAUL_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    testing::Process program(command, path("output"));
    const int status = program.wait();
    out_ = program.output();
    err_ = program.errors();
    return status;
  }
  int certificates(const std::string& cluster, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"certificates", "--cluster=" + cluster, "--out=" + path("made")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return longhaul(arguments);
  }

  testing::TemporaryDirectory directory_;
  std::string out_, err_;
};

TEST_F(LonghaulProgram, MakesCertificatesForEachTask) {
  EXPECT_EQ(certificates(path("cluster.json"), {"--days=30", "--add-name=node7", "--add-name", "fe80::7"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr(path("made") + ":"), HasSubstr("ca.key (secret): "), HasSubstr("worker-0.crt: "),
                          HasSubstr("which listens on 10.0.0.4:2223"),
                          HasSubstr(".security = {.certificate_file = \"ps-0.crt\", .key_file = \"ps-0.key\", "
                                    ".ca_file = \"ca.crt\"},"),
                          HasSubstr("--renew")));
  for (const std::string stem : {"ps-0", "worker-0", "client"}) {
    check_security({.certificate_file = path("made/" + stem + ".crt"),
                    .key_file = path("made/" + stem + ".key"),
                    .ca_file = path("made/ca.crt"),
                    .token_file = path("made/token")});
  }
}

TEST_F(LonghaulProgram, ReadsTfConfig) {
  ASSERT_EQ(
      ::setenv("TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})", 1),
      0);
  EXPECT_EQ(certificates("TF_CONFIG"), 0) << err_;
  EXPECT_TRUE(FileSystem::real().exists(path("made/worker-1.crt")));
  ::unsetenv("TF_CONFIG");
  EXPECT_EQ(certificates("TF_CONFIG"), 1);
  EXPECT_THAT(err_, HasSubstr("TF_CONFIG is not set"));
}

TEST_F(LonghaulProgram, ReplacesNothingUnlessToldToRenew) {
  ASSERT_EQ(certificates(path("cluster.json")), 0) << err_;
  const std::string before = read_file(FileSystem::real(), path("made/ps-0.crt"));
  EXPECT_EQ(certificates(path("cluster.json")), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr(path("made") + " is not empty"), HasSubstr("--renew")));
  EXPECT_EQ(read_file(FileSystem::real(), path("made/ps-0.crt")), before);
  EXPECT_EQ(certificates(path("cluster.json"), {"--renew"}), 0) << err_;
  EXPECT_NE(read_file(FileSystem::real(), path("made/ps-0.crt")), before);
}

TEST_F(LonghaulProgram, SaysWhatItDoes) {
  EXPECT_EQ(longhaul({"--help"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("certificates"), HasSubstr("Exit status: 0 done; 1 an error, or something")));
  EXPECT_EQ(longhaul({"certificates", "--help"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("--cluster"), HasSubstr("--out"), HasSubstr("--days"), HasSubstr("--renew"),
                          HasSubstr("--add-name"), HasSubstr("825")));
}

TEST_F(LonghaulProgram, RefusesWrongUsage) {
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {},
           {"certificate"},
           {"certificates"},
           {"certificates", "--cluster=" + path("cluster.json")},
           {"certificates", "--cluster=" + path("cluster.json"), "--out=" + path("made"), "--days=0"},
           {"certificates", "--cluster=" + path("cluster.json"), "--out=" + path("made"), "--days=x"},
           {"certificates", "--cluster=" + path("cluster.json"), "--out=" + path("made"), "more"}}) {
    EXPECT_EQ(longhaul(wrong), 2);
    EXPECT_FALSE(err_.empty());
  }
  EXPECT_FALSE(FileSystem::real().exists(path("made")));
}

TEST_F(LonghaulProgram, NamesWhatIsWrongWithTheCluster) {
  EXPECT_EQ(certificates(path("none.json")), 1);
  EXPECT_THAT(err_, HasSubstr(path("none.json")));
  for (const auto& [text, problem] :
       std::vector<std::pair<std::string, std::string>>{{"", "not JSON"},
                                                        {"[]", "must be an object"},
                                                        {"{}", "no job"},
                                                        {R"({"ps": ["a"]})", "want host:port"},
                                                        {R"({"ps": ["a:1"], "worker": ["a:1"]})", "a:1"},
                                                        {R"({"p s": ["a:1"]})", "Job name 'p s'"},
                                                        {R"({"ps": ["0.0.0.0:1"]})", "--add-name"}}) {
    put("wrong.json", text);
    EXPECT_EQ(certificates(path("wrong.json")), 1) << text;
    EXPECT_THAT(err_, AllOf(HasSubstr("longhaul: "), HasSubstr(problem))) << text;
    EXPECT_THAT(out_, IsEmpty());
  }
  EXPECT_FALSE(FileSystem::real().exists(path("made")));
}

TEST_F(LonghaulProgram, NamesADirectoryThatItCannotWrite) {
  put("made", "a file");
  EXPECT_EQ(certificates(path("cluster.json")), 1);
  EXPECT_THAT(err_, HasSubstr(path("made")));
  EXPECT_EQ(longhaul({"certificates", "--cluster=" + path("cluster.json"), "--out=/proc/none"}), 1);
  EXPECT_THAT(err_, HasSubstr("/proc/none"));
}

TEST_F(LonghaulProgram, ChecksThatATrainingResumesToTheSameBytes) {
  EXPECT_EQ(longhaul({"resume-check", "--kills=1", "--stops=1", "--seed=3", "--keep=" + path("runs"), "--",
                      TINY_TRAINING, "exact", "{}"}),
            0)
      << out_ << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("--seed=3"), HasSubstr("killed: the same bytes in all 3 variables"),
                          HasSubstr("stopped: the same bytes in all 3 variables")));
  EXPECT_EQ(longhaul({"resume-check", "--seed=3", "--stops=0", "--", TINY_TRAINING, "forgets", "{}"}), 1);
  EXPECT_THAT(out_, HasSubstr("the first is weight"));
  EXPECT_THAT(err_, AllOf(HasSubstr("end with other bytes"), HasSubstr("--seed=3 --keep=DIR")));
}

TEST_F(LonghaulProgram, SaysHowAResumeCheckIsUsed) {
  EXPECT_EQ(longhaul({"resume-check", "--help"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("longhaul resume-check -- ./train --logdir={}"),
                          HasSubstr("LONGHAUL_RESUME_CHECK_DIR"), HasSubstr("--keep"), HasSubstr("--timeout")));
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"resume-check"}, "no command"},
      {{"resume-check", "--"}, "no command"},
      {{"resume-check", "./train"}, "put -- before the command"},
      {{"resume-check", "--kills=x", "--", "true"}, "--kills"},
      {{"resume-check", "--kills=0", "--stops=0", "--", "true"}, "nothing to check"},
      {{"resume-check", "--", "true"}, "wrote no checkpoint"},
      {{"resume-check", "--", "./no_such_program"}, "cannot be started"}};
  for (const auto& [arguments, problem] : wrong) {
    EXPECT_EQ(longhaul(arguments), 2) << problem;
    EXPECT_THAT(err_, HasSubstr(problem));
  }
  EXPECT_EQ(longhaul({"resume-check", "--", "false"}), 1);
  EXPECT_THAT(err_, HasSubstr("undisturbed: it ended with exit status 1"));
}

TEST_F(LonghaulProgram, AResumeCheckEndsWithAllThatItStarted) {
  const std::string script = "echo $$ > " + path("pid") + "; sleep 100";
  testing::Process check({LONGHAUL_PROGRAM, "resume-check", "--", "sh", "-c", script}, path("output"));
  for (int i = 0; i < 3000 && !FileSystem::real().exists(path("pid")); ++i)
    check.runs_for(std::chrono::milliseconds(10));
  check.runs_for(std::chrono::milliseconds(100));
  const pid_t started = std::stoi(read_file(FileSystem::real(), path("pid")));
  check.send(SIGINT);
  EXPECT_EQ(check.wait(), 128 + SIGINT);
  EXPECT_EQ(::kill(started, 0), -1) << "the program still runs";
}

TEST_F(LonghaulProgram, LeavesNoSecretsToOthers) {
  const mode_t before = ::umask(0);
  ASSERT_EQ(certificates(path("cluster.json")), 0) << err_;
  ::umask(before);
  for (const std::string& name : FileSystem::real().list(path("made"))) {
    struct stat info{};
    ASSERT_EQ(::stat(path("made/" + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, name.ends_with(".crt") ? 0644u : 0600u) << name;
  }
}

}  // namespace
}  // namespace longhaul
