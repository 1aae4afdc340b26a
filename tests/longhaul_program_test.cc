// The program `longhaul`, as a user meets it.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/testing/needs_fixture.h"
#include "tests/longhaul_program_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

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

TEST_F(LonghaulTrainings, ShowsHowATrainingStands) {
  EXPECT_EQ(longhaul({"status", path("runs/demo")}), 1);
  EXPECT_THAT(out_, AllOf(HasSubstr("runs/demo: killed"), HasSubstr("host train-3, process 4711"),
                          HasSubstr("continues from model.ckpt-2000"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(json_of({"status", path("runs/demo")}, 1)["directories"][0]["step"], 2121);
  EXPECT_EQ(longhaul({"status", path("none")}), 1);
  EXPECT_EQ(longhaul({"runs", path("runs/demo")}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("failed: the loss is not a number"), HasSubstr("0 to 1200"), HasSubstr("200")));
  EXPECT_EQ(json_of({"runs", path("runs/demo")}, 0)["all_runs"], 2);
}

TEST_F(LonghaulTrainings, LooksAtCheckpointsAndWritesNothing) {
  const auto before = files_.list(path("runs/demo"));
  EXPECT_EQ(longhaul({"ls", path("runs/demo")}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("model.ckpt-1000"), HasSubstr("latest")));
  EXPECT_EQ(longhaul({"show", path("runs/demo"), "dense/weights"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("float[20,10]"), HasSubstr("minimum -0.49"), HasSubstr("##")));
  EXPECT_EQ(longhaul({"verify", path("runs/demo"), "--all"}), 0) << err_;
  EXPECT_EQ(longhaul({"diff", path("runs/demo/model.ckpt-1000"), path("runs/demo/model.ckpt-2000")}), 1);
  EXPECT_THAT(out_, HasSubstr("3 of 3 tensors differ"));
  EXPECT_EQ(json_of({"diff", path("runs/demo"), path("runs/demo")}, 0)["different"], 0);
  EXPECT_EQ(longhaul({"prune", path("runs/demo"), "--keep=1"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("would be deleted"));
  EXPECT_EQ(longhaul({"events", path("runs/demo"), "--tag=loss", "--plot"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("2 | *"));
  EXPECT_EQ(files_.list(path("runs/demo")), before);
}

TEST_F(LonghaulTrainings, AWarningOfAFileThatIsLookedAtSeveralTimesIsToldOnce) {
  put("runs/demo/checkpoint", "model_checkpoint_path: model.ckpt-1000\n");
  for (const std::string command : {"status", "prune", "ls"}) {
    longhaul({command, path("runs/demo")});
    const size_t first = err_.find("Invalid checkpoint state");
    EXPECT_NE(first, err_.npos) << command;
    EXPECT_EQ(err_.find("Invalid checkpoint state", first + 1), err_.npos) << err_;
  }
}

TEST_F(LonghaulTrainings, ChangesWhatItIsToldTo) {
  EXPECT_EQ(longhaul({"prune", path("runs/demo"), "--keep=1", "--delete"}), 0) << err_;
  EXPECT_EQ(json_of({"ls", path("runs/demo")}, 0)["directories"][0]["checkpoints"].size(), 1u);
  EXPECT_EQ(longhaul({"convert", path("runs/demo"), path("demo.safetensors"), "--rename=^dense/=d."}), 0) << err_;
  EXPECT_EQ(json_of({"show", path("demo.safetensors")}, 0)["tensors"][0]["name"], "d.bias");
  EXPECT_EQ(longhaul({"convert", path("runs/demo"), path("demo.safetensors"), "--rename=x"}), 2);
  EXPECT_EQ(longhaul({"convert", path("runs/demo"), path("demo.safetensors")}), 1);
  EXPECT_THAT(err_, HasSubstr("--replace"));
}

// A command of the page, and what it prints there.
struct ShownCommand {
  std::string command, output;
};

std::vector<ShownCommand> commands_of_page() {
  std::istringstream page(read_file(FileSystem::real(), LONGHAUL_COMMAND_PAGE));
  std::vector<ShownCommand> shown;
  std::string command, *block = nullptr;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("```")) {
      if (block != nullptr) *block += line + "\n";
      continue;
    }
    if (line == "```sh") {
      command.clear();
      block = &command;
    } else if (line == "```text" && !command.empty()) {
      shown.push_back({command, ""});
      block = &shown.back().output;
      command.clear();
    } else {
      block = nullptr;
    }
  }
  return shown;
}

TEST_F(LonghaulTrainings, PrintsWhatThePageOfTheGuideShows) {
  const std::vector<ShownCommand> shown = commands_of_page();
  EXPECT_GE(shown.size(), 10u);
  for (const auto& [command, output] : shown) {
    testing::Process shell(
        {"/bin/bash", "-c",
         "cd " + directory_.path() + "; longhaul() { " + LONGHAUL_PROGRAM + " \"$@\"; }; " + command},
        path("output"));
    shell.wait();
    const std::string printed = std::regex_replace(shell.output(), std::regex(directory_.path() + "/"), "");
    EXPECT_EQ(shape_of(printed), shape_of(output)) << command << "now prints:\n" << shell.output() << shell.errors();
  }
}

TEST_F(LonghaulTrainings, AnErrorIsValidJsonToo) {
  EXPECT_THAT(json_of({"show", path("none")}, 1)["error"], HasSubstr("there is no"));
  EXPECT_THAT(err_, StartsWith("longhaul: "));
  EXPECT_EQ(longhaul({"show", path("runs/demo"), "\x1b[2J"}), 1);
  EXPECT_THAT(err_, Not(HasSubstr("\x1b")));
  const nlohmann::json wrong = json_of({"show", "--bogus", path("none")}, 2);
  EXPECT_THAT(wrong["error"], HasSubstr("--bogus"));
  EXPECT_EQ(wrong["command"], "show");
  EXPECT_THAT(err_, HasSubstr("--bogus"));
  EXPECT_THAT(json_of({"shwo"}, 2)["error"], HasSubstr("no command \"shwo\"; did you mean 'show'?"));
}

TEST_F(LonghaulTrainings, EndsQuietlyWhenNobodyReads) {
  // The shell's status of the first command: that of SIGPIPE.
  testing::Process program({"/bin/bash", "-c",
                            "set -o pipefail; " + std::string(LONGHAUL_PROGRAM) + " events " + path("runs/demo") +
                                " --tag=loss --follow | head -n 1"},
                           path("output"));
  EXPECT_TRUE(program.runs_for(std::chrono::milliseconds(300)));
  for (int i = 0; i < 2; ++i) {
    write_events();
    program.runs_for(std::chrono::milliseconds(200));
  }
  EXPECT_EQ(program.wait(std::chrono::seconds(30)), 128 + SIGPIPE);
  EXPECT_EQ(program.errors(), "");
}

TEST_F(LonghaulProgram, StartsAProgramAgain) {
  const std::string script = "echo x >> " + path("starts") + "; [ $(wc -l < " + path("starts") + ") -ge 3 ] || exit 75";
  EXPECT_EQ(longhaul({"run", "--pause=0.01", "--", "sh", "-c", script}), 0) << err_;
  EXPECT_THAT(err_, AllOf(HasSubstr("exit status 75 after "), HasSubstr("3 starts in "), HasSubstr("exit status 0")));
  EXPECT_EQ(longhaul({"run", "--json", "--", "sh", "-c", "exit 2"}), 2);
  EXPECT_THAT(err_, HasSubstr("\"event\":\"finished\""));
  EXPECT_EQ(longhaul({"run", "--max-restarts=0", "--", "sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"run"}, {"run", "true"}, {"run", "--", "./none"}, {"run", "--pause=x"}}) {
    EXPECT_EQ(longhaul(wrong), 2);
    EXPECT_THAT(err_, Not(IsEmpty()));
  }
}

TEST_F(LonghaulProgram, ARunSpeaksAsTheLogOfItsProgramDoes) {
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "LONGHAUL_LOG_FORMAT=json", LONGHAUL_PROGRAM, "run"});
    testing::Process program(arguments, path("output"));
    const int status = program.wait();
    std::vector<std::string> said;  // event and severity
    std::istringstream lines(program.errors());
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      EXPECT_THAT(json["time"].get<std::string>(), ::testing::EndsWith("Z"));
      EXPECT_FALSE(json["message"].get<std::string>().empty());
      said.push_back(json.value("event", "") + " " + json["severity"].get<std::string>());
    }
    said.push_back(std::to_string(status));
    return said;
  };
  EXPECT_THAT(run({"--max-restarts=0", "--", "sh", "-c", "[ $LONGHAUL_LOG_FORMAT = json ] && exit 3"}),
              ::testing::ElementsAre("started info", "ended warning", "finished warning", "3"));
  EXPECT_THAT(run({"--", "./none"}), ::testing::ElementsAre(" error", "2"));
}

TEST_F(LonghaulProgram, ARunGoesOnWhereNobodyTakesWhatItSays) {
  const std::string run = std::string(LONGHAUL_PROGRAM) + " run --pause=0.01 -- sh -c '" +
                          "echo x >> starts; [ $(wc -l < starts) -ge 3 ] && exit 2; sleep 0.1; exit 75'";
  // Full; closed; and a reader that has gone after the first line.
  for (const std::string where : {"2>/dev/full", "2>&-", "2> >(head -n 1 >/dev/null)"}) {
    testing::Process shell({"/bin/bash", "-c", "cd " + directory_.path() + "; rm -f starts; " + run + " " + where},
                           path("output"));
    EXPECT_EQ(shell.wait(), 2) << where << shell.errors();
    EXPECT_EQ(read_file(FileSystem::real(), path("starts")), "x\nx\nx\n") << where;
  }
  // Of SIGPIPE, the program has what it would have without.
  testing::Process shell(
      {"/bin/bash", "-c",
       std::string(LONGHAUL_PROGRAM) + " run --max-restarts=0 -- bash -c 'kill -PIPE $$' 2>/dev/full"},
      path("output"));
  EXPECT_EQ(shell.wait(), 128 + SIGPIPE);
}

TEST_F(LonghaulTrainings, OutputThatCannotBeWrittenIsAnErrorAndNoCrash) {
  const auto status_of = [&](const std::string& command) {
    testing::Process shell(
        {"/bin/bash", "-c",
         "cd " + directory_.path() + "; longhaul() { " + LONGHAUL_PROGRAM + " \"$@\"; }; " + command},
        path("output"));
    const int status = shell.wait();
    err_ = shell.errors();
    return status;
  };
  for (const std::string command :
       {"ls runs/demo", "verify --json runs/demo", "man", "--help", "ls --help", "--version", "completion bash",
        "convert runs/demo demo.pt --replace", "show --json none",
        "certificates --cluster=cluster.json --out=made --renew", "resume-check -- true"}) {
    if (command.starts_with("certificates")) status_of("longhaul " + command.substr(0, command.find(" --renew")));
    for (const std::string where : {">/dev/full", ">&-"}) {
      EXPECT_EQ(status_of("longhaul " + command + where), 1) << command << where;
      EXPECT_THAT(err_, HasSubstr("standard output cannot be written")) << command << where;
    }
    for (const std::string where : {">/dev/full 2>/dev/full", ">&- 2>&-"}) {
      EXPECT_EQ(status_of("longhaul " + command + where), 1) << command << where;
    }
  }
  for (const std::string where : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(status_of("longhaul ls none " + where), 1) << where;
    EXPECT_EQ(status_of("longhaul ls --none " + where), 2) << where;
    EXPECT_EQ(status_of("longhaul run -- ./none " + where), 2) << where;
    EXPECT_EQ(status_of("longhaul pin runs/demo " + where), 0) << where;
  }
}

TEST_F(LonghaulProgram, ANumberIsANumber) {
  for (const std::string number : {"nan", "-nan", "inf", "-inf", "1e999", "-1", "x", ""}) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"run", "--pause=" + number, "--", "false"},
                                               {"run", "--longest-pause=" + number, "--", "false"},
                                               {"run", "--steady=" + number, "--", "false"},
                                               {"resume-check", "--timeout=" + number, "--", "false"},
                                               {"diff", "--tolerance=" + number, "a", "b"}}) {
      EXPECT_EQ(longhaul(command), 2) << command[0] << " " << command[1];
    }
  }
}

TEST_F(LonghaulProgram, ARefusedNumberIsToldInAShortLine) {
  EXPECT_EQ(longhaul({"prune", "a", "--keep-multiples=0"}), 2);
  EXPECT_THAT(err_, HasSubstr("9223372036854775807"));
  EXPECT_EQ(longhaul({"resume-check", "--epoch-steps=-1", "--", "true"}), 2);
  EXPECT_THAT(err_, HasSubstr("9223372036854775807"));
}

TEST_F(LonghaulTrainings, AConversionThatMakesNoSenseIsWrongUsage) {
  const std::string demo = path("runs/demo"), to = path("demo.pt"), parentheses(100000, '(');
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{demo, to, "--only=("},
                                             {demo, to, "--rename=(=x"},
                                             {demo, to, "--only=" + parentheses},
                                             {demo, to, "--rename=" + parentheses + "=x"},
                                             {demo, ""},
                                             {"", to}}) {
    std::vector<std::string> arguments{"convert"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(longhaul(arguments), 2) << err_;
    EXPECT_LT(err_.size(), 1000u);
  }
  EXPECT_EQ(longhaul({"convert", demo, to, "--only=nothing"}), 1);
  EXPECT_THAT(err_, HasSubstr("none of the 3 tensors"));
  EXPECT_FALSE(files_.exists(to));
}

TEST_F(LonghaulProgram, IsFitToBeTheFirstProcessOfAContainer) {
  // There the kernel passes no signal that it does not handle, and nobody else reaps.
  const std::vector<std::string> unshare{"/usr/bin/unshare", "--map-root-user", "--user",      "--pid",
                                         "--fork",           "--kill-child",    "--mount-proc"};
  const auto contained = [&](const std::vector<std::string>& program) {
    std::vector<std::string> command = unshare;
    command.insert(command.end(), program.begin(), program.end());
    return command;
  };
  const bool is_allowed = testing::Process(contained({"/bin/true"}), path("output")).wait() == 0;
  LONGHAUL_NEEDS("namespaces", is_allowed, "a process may not make namespaces of its own here");
  const std::string script =
      "[ $PPID = 1 ] || exit 3; trap 'exit 75' TERM; (sleep 0.05 &); kill -TERM 1; while :; do sleep 0.01; done";
  testing::Process run(contained({LONGHAUL_PROGRAM, "run", "--", "sh", "-c", script}), path("output"));
  EXPECT_EQ(run.wait(), 75) << run.errors();
  // Orphans come to it, for weeks: they are gone while the command still runs.
  const std::string with_orphan =
      "orphan=$(sleep 0.05 >/dev/null & echo $!); i=0; "
      "while [ -e /proc/$orphan ]; do i=$((i+1)); [ $i -lt 1000 ] || exit 4; sleep 0.01; done";
  testing::Process reaping(contained({LONGHAUL_PROGRAM, "run", "--", "sh", "-c", with_orphan}), path("output"));
  EXPECT_EQ(reaping.wait(), 0) << reaping.errors();
}

TEST_F(LonghaulProgram, NeedsNoLibtorch) {
  testing::Process libraries({"/usr/bin/ldd", LONGHAUL_PROGRAM}, path("output"));
  EXPECT_EQ(libraries.wait(), 0) << libraries.errors();
  EXPECT_THAT(libraries.output(), AllOf(HasSubstr("libc.so"), Not(HasSubstr("libtorch")), Not(HasSubstr("libc10"))));
}

TEST_F(LonghaulTrainings, ABoardIsServedUntilASignalComes) {
  for (const int signal : {SIGTERM, SIGINT}) {
    testing::Process board({LONGHAUL_PROGRAM, "board", "--port=0", path("."), path("later")}, path("board"));
    ASSERT_TRUE(board.prints("(Ctrl-C ends it)")) << board.errors();
    EXPECT_THAT(board.output(), HasSubstr("later is not there yet: it is waited for"));
    std::smatch url;
    const std::string said = board.output();
    ASSERT_TRUE(std::regex_search(said, url, std::regex("http://127\\.0\\.0\\.1:([0-9]+)/")));
    const std::string page = fetch(std::stoi(url[1]), "GET", "/runs.json");
    EXPECT_THAT(page, AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("\"format\":1")));
    EXPECT_EQ(longhaul({"board", "--port=" + url[1].str(), path(".")}), 1);
    EXPECT_THAT(err_, HasSubstr("is taken by another process"));
    board.send(signal);
    EXPECT_EQ(board.wait(), 0) << board.errors();
  }
}

TEST_F(LonghaulProgram, ABoardThatMakesNoSenseIsRefused) {
  EXPECT_EQ(longhaul({"board"}), 2);
  EXPECT_EQ(longhaul({"board", "--port=70000", "."}), 2);
  EXPECT_EQ(longhaul({"board", "--port=0", path("cluster.json")}), 1);
  EXPECT_THAT(err_, HasSubstr("cluster.json is no directory"));
  EXPECT_EQ(longhaul({"board", "--port=0", "--address=0.0.0.0", path(".")}), 1);
  EXPECT_THAT(err_, HasSubstr("set --token-file"));
  EXPECT_EQ(longhaul({"board", "--port=0", "--token-file=" + path("none"), path(".")}), 1);
  EXPECT_THAT(err_, HasSubstr("none"));
}

TEST_F(LonghaulProgram, HasAManualAndCompletion) {
  EXPECT_EQ(longhaul({"man"}), 0);
  EXPECT_THAT(out_, AllOf(StartsWith(".TH LONGHAUL 1"), HasSubstr(".SS longhaul status"), HasSubstr("\\-\\-json"),
                          HasSubstr(".SS longhaul run")));
  const std::string complete = "source <(" + std::string(LONGHAUL_PROGRAM) +
                               " completion bash); COMP_WORDS=(longhaul \"$@\"); COMP_CWORD=$#; _longhaul; "
                               "echo \"${COMPREPLY[@]}\"";
  const auto completed = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command{"/bin/bash", "-c", complete, "bash"};
    command.insert(command.end(), words.begin(), words.end());
    testing::Process shell(command, path("output"));
    EXPECT_EQ(shell.wait(), 0) << shell.errors();
    return shell.output();
  };
  EXPECT_EQ(completed({"ver"}), "verify\n");
  EXPECT_EQ(completed({"verify", "--a"}), "--all\n");
  EXPECT_EQ(completed({"verify", "fi"}), "\n");
  EXPECT_EQ(completed({"run", "--", "--m"}), "\n");
  EXPECT_EQ(longhaul({"completion", "fish"}), 0);
  EXPECT_THAT(out_, HasSubstr("-a status -d "));
  EXPECT_EQ(longhaul({"completion", "tcsh"}), 2);
}

TEST_F(LonghaulProgram, ItsManualIsReadByGroffWithoutAWarning) {
  const auto groff = [&](const std::string& file) {
    testing::Process program({"/usr/bin/env", "groff", "-man", "-ww", "-z", "-Tutf8", file}, path("groff"));
    const int status = program.wait();
    EXPECT_EQ(program.output(), "");
    err_ = program.errors();
    return status;
  };
  const bool is_there = testing::Process({"/usr/bin/env", "groff", "--version"}, path("groff")).wait() == 0;
  LONGHAUL_NEEDS("groff", is_there, "there is no groff (Debian's groff-base)");
  ASSERT_EQ(longhaul({"man"}), 0);
  put("longhaul.1", out_);
  EXPECT_EQ(groff(path("longhaul.1")), 0);
  EXPECT_EQ(err_, "");
  put("wrong.1", out_ + ".nonsense\n");
  groff(path("wrong.1"));
  EXPECT_THAT(err_, HasSubstr("nonsense")) << "it warns at all";
}

TEST_F(LonghaulProgram, ExaminesTheMachine) {
  longhaul({"doctor", path("."), "--probe", "--json"});
  const auto report = nlohmann::json::parse(out_);
  std::set<std::string> subjects;
  for (const auto& finding : report["findings"]) subjects.insert(finding["subject"]);
  for (const std::string subject : {"io_uring", "locks", "clock source", "threads", "libtorch version"}) {
    EXPECT_TRUE(subjects.contains(subject)) << subject << out_;
  }
}

// "Without it are those whose output is something else: `board`, ...".
std::vector<std::string> without_json_by_page() {
  const std::string page = read_file(FileSystem::real(), LONGHAUL_COMMAND_PAGE);
  const size_t begin = page.find("Without it are those"), end = page.find("\n\n", begin);
  const std::string sentence = page.substr(begin, end - begin);
  const std::regex command("`([a-z-]+)`");
  std::vector<std::string> commands;
  for (std::sregex_iterator each(sentence.begin(), sentence.end(), command), none; each != none; ++each)
    commands.push_back((*each)[1]);
  return commands;
}

TEST_F(LonghaulProgram, EachCommandTeachesByExampleAndSaysItsExitStatus) {
  ASSERT_EQ(longhaul({"--help"}), 0);
  std::istringstream help(out_.substr(out_.find("Subcommands:\n")));
  int commands = -1;  // without the heading
  std::vector<std::string> without_json;
  for (std::string command, about; help >> command && std::getline(help, about); ++commands) {
    if (commands < 0) continue;
    EXPECT_EQ(longhaul({command, "--help"}), 0) << command;
    EXPECT_THAT(out_, AllOf(ContainsRegex("\n  [^\n]*longhaul " + command), HasSubstr("Exit status: "))) << command;
    if (out_.find("--json") == out_.npos) without_json.push_back(command);
  }
  EXPECT_THAT(without_json, UnorderedElementsAreArray(without_json_by_page()));
  EXPECT_GE(commands, 18);
}

}  // namespace
}  // namespace longhaul
