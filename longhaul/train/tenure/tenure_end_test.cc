// The end of a training run, under both front ends, by stop() and by a destructor: each step of it throws in turn. All
// others are done, in their order, the directory is given back last, and the first error is what is thrown. Each test
// also checks that the planned faults have happened.
#include <atomic>
#include <set>

#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// What even a mirror does not expect of a disk.
struct NotAStandardException {};

// A file that calls something before each append.
class WatchedFile : public WritableFile {
 public:
  WatchedFile(std::unique_ptr<WritableFile> inner, std::function<void(std::string_view)> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}
  void append(std::string_view data) override {
    before_(data);
    inner_->append(data);
  }
  void flush() override { inner_->flush(); }
  void sync() override { inner_->sync(); }
  void close() override { inner_->close(); }

 private:
  const std::unique_ptr<WritableFile> inner_;
  const std::function<void(std::string_view)> before_;
};

class WatchedDisk : public BadDisk {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    if (before_create) before_create(path);
    auto file = BadDisk::create(path, if_exists);
    if (path.ends_with("run.journal.new")) return std::make_unique<WatchedFile>(std::move(file), before_journal);
    if (path.find("events.out.tfevents") == path.npos) return file;
    return std::make_unique<WatchedFile>(std::move(file), before_events);
  }
  std::function<void(const std::string& path)> before_create;
  std::function<void(std::string_view data)> before_journal = [](auto) {}, before_events = [](auto) {};
};

class WatchedSession : public testing::ScriptedSession {
 public:
  WatchedSession(Graph& graph, std::shared_ptr<Variables> variables, std::function<void()> before_close)
      : ScriptedSession(graph, std::move(variables)), before_close_(std::move(before_close)) {
    on("RestoreV2", restore_tensors);
  }
  void close() override {
    before_close_();
    ScriptedSession::close();
  }

 private:
  const std::function<void()> before_close_;
};

// Which steps fail, and what is thrown then.
struct Fault {
  std::set<std::string> steps;
  std::string error;
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  for (const std::string& step : fault.steps) out << step << ' ';
  return out;
}

class TenureEnd : public SupervisorFixture, public ::testing::WithParamInterface<Fault> {
 protected:
  TenureEnd() {
    add_step();
    install_session_factory([this](const std::string&, Graph& made_for, const SessionOptions&) {
      return std::make_unique<WatchedSession>(made_for, server,
                                              [this] { happens("session", UnavailableError("gone")); });
    });
    disk.before_rename = [this](const std::string&, const std::string& to) {
      if (is_ending && to == directory.file("model.ckpt-2.index")) {
        throw_if_failing("checkpoint", ResourceExhaustedError("the disk is full"));
      }
    };
    disk.before_remove = [this](const std::string& path) {
      if (is_ending && path == owner_path(directory.path())) happens("lock", UnavailableError("the lock"));
      if (path == owner_path(mirror.path())) note("mirror");
    };
    disk.before_create = [this](const std::string& path) {
      if (path.starts_with(mirror.path())) throw_if_failing("mirror", NotAStandardException());
    };
    disk.before_journal = [this](std::string_view text) {
      const auto has = [&](const char* kind) { return text.find(kind) != text.npos; };
      if (!is_ending || !(has("ended ") || has("failed ") || has("disturbed "))) return;
      happens("journal", std::runtime_error("the journal"));
    };
    disk.before_events = [this](std::string_view) {
      if (is_ending) throw_if_failing("events", ResourceExhaustedError("the disk is full"));
    };
    mirror_options = {.directory = mirror.path()};
    if (fails("mirror")) mirror_options.end_timeout = Seconds{0};
  }

  bool fails(const std::string& step) const { return GetParam().steps.contains(step); }
  template <typename Error>
  void throw_if_failing(const std::string& step, const Error& error) {
    if (!fails(step)) return;
    {
      MutexLock lock(mutex);
      failed.insert(step);
    }
    throw error;
  }
  bool has_failed(const std::string& step) {
    MutexLock lock(mutex);
    return failed.contains(step);
  }
  void note(const std::string& step) {
    MutexLock lock(mutex);
    if (is_ending) done.push_back(step);
  }
  template <typename Error>
  void happens(const std::string& step, const Error& error) {
    note(step);
    throw_if_failing(step, error);
  }

  // The training: a step, whose end comes with the one that `make_step` makes next.
  void train_to_the_end(const std::function<void()>& make_step, const Coordinator& coord, int first_checkpoint) {
    const std::string copy = mirror.file("model.ckpt-" + std::to_string(first_checkpoint));
    eventually([&] { return fails("mirror") ? has_failed("mirror") : exists(copy); });
    coord.start_thread("of the training", [this, coord] {
      eventually([&] { return coord.wait_for_stop(Seconds{3600}); });
      happens("threads", InternalError("the threads"));
    });
    make_step();
    is_ending = true;
  }

  // What comes out of the end of a training.
  template <typename Training>
  std::string error_of_end(const Training& training) {
    try {
      training();
    } catch (const NotAStandardException&) {
      return "the mirror";
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  static void expect_error(const std::string& error) {
    EXPECT_EQ(error.empty(), GetParam().error.empty()) << error;
    EXPECT_THAT(error, HasSubstr(GetParam().error));
  }

  // `saves`: the last checkpoint is taken, unless its own step fails. `closes`: the session is the front end's.
  void expect_all_has_ended(bool saves, bool closes = true) {
    std::vector<std::string> expected{"threads", "mirror", "session", "journal", "lock"};
    if (fails("mirror")) std::erase(expected, "mirror");
    if (!closes) std::erase(expected, "session");
    {
      MutexLock lock(mutex);
      EXPECT_EQ(done, expected);
      EXPECT_EQ(failed, GetParam().steps) << "not all of the planned faults have happened";
    }
    EXPECT_EQ(FileSystem::real().exists(owner_path(directory.path())), fails("lock"));
    const bool is_saved = saves && !fails("checkpoint");
    EXPECT_EQ(exists(directory.file("model.ckpt-2")), is_saved);
    EXPECT_EQ(exists(mirror.file("model.ckpt-2")), is_saved && !fails("mirror"));
    if (fails("journal")) return;
    const auto sums = parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history.sums();
    EXPECT_EQ(sums.phase, RunHistory::Phase::kStopped);
    EXPECT_EQ(sums.interruptions, GetParam().error.empty() ? 0 : 1);
  }

  WatchedDisk disk;
  testing::TemporaryDirectory mirror, events_place;
  MirrorOptions mirror_options;
  std::atomic<bool> is_ending{false};
  Mutex mutex;
  std::vector<std::string> done GUARDED_BY(mutex);
  std::set<std::string> failed GUARDED_BY(mutex);
};

class SupervisorsTenureEnd : public TenureEnd {};

// It has no hooks: in their place the program's function throws, which ends training and leaves no last checkpoint.
INSTANTIATE_TEST_SUITE_P(
    Step, SupervisorsTenureEnd,
    ::testing::Values(Fault{{}, ""}, Fault{{"hooks"}, "the hooks"}, Fault{{"threads"}, "the threads"},
                      Fault{{"checkpoint"}, "the last checkpoint could not be saved"},
                      Fault{{"events"}, ""},   // an event file that lacks something is logged
                      Fault{{"session"}, ""},  // so is a session that does not close well
                      Fault{{"lock"}, ""},     // so is a lock that is not given back
                      Fault{{"mirror"}, ""}, Fault{{"journal"}, "the journal"},
                      Fault{{"mirror", "journal"}, "the journal"}, Fault{{"journal", "lock"}, "the journal"},
                      Fault{{"checkpoint", "mirror", "journal"}, "the last checkpoint could not"},
                      Fault{{"hooks", "threads", "session", "journal", "lock"}, "the hooks"},
                      Fault{{"threads", "events", "mirror", "session", "journal", "lock"}, "the threads"}));

TEST_P(SupervisorsTenureEnd, DoesAllOtherStepsAndThrowsTheFirstError) {
  FileWriter writer(events_place.path(), {.files = &disk});
  options.save_model_secs = options.save_summaries_secs = Seconds{0};
  options.summary_writer = &writer;
  options.services.saves.last_save_timeout = Seconds{0};
  options.chief.mirror = mirror_options;
  options.files = &disk;
  Supervisor sv(options);
  const std::string error = error_of_end([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      sv.saver()->save(session, sv.save_path(), step);
      train_to_the_end([&] { session.run(train); }, sv.coord(), 1);
      throw_if_failing("hooks", InternalError("the hooks"));
    });
  });
  expect_error(error);
  EXPECT_TRUE(writer.is_closed());
  expect_all_has_ended(!fails("hooks") && !fails("threads"));
}

// Of a session that the program prepared, and closes itself.
class PreparedTenureEnd : public TenureEnd {
 protected:
  PreparedTenureEnd() {
    options.save_model_secs = options.save_summaries_secs = Seconds{0};
    options.services.saves.last_save_timeout = Seconds{0};
    options.chief.mirror = mirror_options;
    options.files = &disk;
  }

  std::shared_ptr<Session> train_with(Supervisor& sv) {
    auto session = sv.prepare_or_wait_for_session();
    session->run(train);
    sv.saver()->save(*session, sv.save_path(), step);
    train_to_the_end([&] { session->run(train); }, sv.coord(), 1);
    return session;
  }
};

class StoppedTenureEnd : public PreparedTenureEnd {};

// In place of the hooks the program reports an error, which stop() throws.
INSTANTIATE_TEST_SUITE_P(Step, StoppedTenureEnd,
                         ::testing::Values(Fault{{}, ""}, Fault{{"hooks"}, "the hooks"},
                                           Fault{{"threads"}, "the threads"},
                                           Fault{{"checkpoint"}, "the last checkpoint could not be saved"},
                                           Fault{{"events"}, ""}, Fault{{"lock"}, ""}, Fault{{"mirror"}, ""},
                                           Fault{{"journal"}, "the journal"},
                                           Fault{{"checkpoint", "mirror", "journal"}, "the last checkpoint could not"},
                                           Fault{{"hooks", "threads", "journal", "lock"}, "the hooks"},
                                           Fault{{"threads", "events", "mirror", "journal", "lock"}, "the threads"}));

TEST_P(StoppedTenureEnd, DoesAllOtherStepsAndThrowsTheFirstError) {
  Supervisor sv(options);
  const auto session = train_with(sv);
  sv.stop_on_exception([&] { throw_if_failing("hooks", InternalError("the hooks")); });
  const std::string error = error_of_end([&] { sv.stop({.save_checkpoint = true}); });
  expect_error(error);
  EXPECT_TRUE(sv.summary_writer()->is_closed());
  expect_all_has_ended(!fails("hooks") && !fails("threads"), /*closes=*/false);
}

class DestroyedTenureEnd : public PreparedTenureEnd {
 protected:
  // Errors are logged, but for the program's own, which is thrown past the Supervisor.
  void expect_end_by_destructor(const std::function<void(Supervisor&)>& before) {
    const LogRecorder log;
    const std::string thrown = error_of_end([&] {
      Supervisor sv(options);
      const auto session = train_with(sv);
      sv.summary_writer()->add_scalar("t", 1, 2);
      before(sv);
      throw_if_failing("hooks", InternalError("the hooks"));
    });
    const std::string words = "a Supervisor destroyed without stop() ended with an error: ";
    const std::string& error = GetParam().error;
    EXPECT_EQ(thrown, fails("hooks") ? error : "");
    const bool is_logged = log.text(LogLevel::kError).find(words + error) != std::string::npos;
    EXPECT_EQ(is_logged, !error.empty() && !fails("hooks")) << log.text();
    expect_all_has_ended(/*saves=*/false, /*closes=*/false);
  }
};

// It takes no last checkpoint. In place of the hooks the program's error destroys it.
INSTANTIATE_TEST_SUITE_P(Step, DestroyedTenureEnd,
                         ::testing::Values(Fault{{}, ""}, Fault{{"hooks"}, "the hooks"},
                                           Fault{{"threads"}, "the threads"}, Fault{{"events"}, ""},
                                           Fault{{"lock"}, ""}, Fault{{"mirror"}, ""},
                                           Fault{{"journal"}, "the journal"},
                                           Fault{{"mirror", "journal"}, "the journal"},
                                           Fault{{"hooks", "threads", "journal", "lock"}, "the hooks"},
                                           Fault{{"threads", "events", "mirror", "journal", "lock"}, "the threads"}));

TEST_P(DestroyedTenureEnd, DoesAllOtherStepsAndLogsTheFirstError) {
  expect_end_by_destructor([](Supervisor&) {});
}

TEST_P(DestroyedTenureEnd, AlsoWhereTheProgramHasJoinedTheThreads) {
  expect_end_by_destructor([this](Supervisor& sv) {
    const std::string error = error_of_end([&] {
      sv.request_stop();
      sv.coord().join();
    });
    EXPECT_EQ(error, fails("threads") ? "the threads" : "");
  });
}

class MonitoredTenureEnd : public TenureEnd {};

INSTANTIATE_TEST_SUITE_P(Step, MonitoredTenureEnd,
                         ::testing::Values(Fault{{}, ""}, Fault{{"hooks"}, "the hooks"},
                                           Fault{{"threads"}, "the threads"},
                                           Fault{{"checkpoint"}, "the last checkpoint could not be saved"},
                                           Fault{{"events"}, ""},   // an event file that lacks something is logged
                                           Fault{{"session"}, ""},  // so is a session that does not close well
                                           Fault{{"lock"}, ""},     // so is a lock that is not given back
                                           Fault{{"mirror"}, ""}, Fault{{"journal"}, "the journal"},
                                           Fault{{"journal", "lock"}, "the journal"},
                                           Fault{{"checkpoint", "hooks"}, "the last checkpoint could not"},
                                           Fault{{"mirror", "journal"}, "the journal"},
                                           Fault{{"hooks", "mirror", "journal"}, "the hooks"},
                                           Fault{{"hooks", "threads", "events", "session", "journal", "lock"},
                                                 "the threads"}));  // which may be the cause

TEST_P(MonitoredTenureEnd, DoesAllOtherStepsAndThrowsTheFirstError) {
  const Coordinator program({.clock = &clock});
  const auto hook = std::make_shared<RecordingHook>();
  hook->on_end = [this](Session&) { throw_if_failing("hooks", InternalError("the hooks")); };
  const MonitoredTrainingSessionOptions training{
      .graph = &graph,
      .checkpoint_dir = directory.path(),
      .hooks = {hook},
      .chief = {.mirror = mirror_options},
      .failures = {.saves = std::make_shared<SaveAttempts>(
                       SaveAttemptsOptions{.last_save_timeout = Seconds{0}, .clock = &clock})},
      .files = &disk,
      .coordinator = program};
  const std::string error = error_of_end([&] {
    monitored_training_session(training, [&](MonitoredSession& session) {
      session.run(train);
      train_to_the_end([&] { session.run(train); }, hook->coord, 0);
    });
  });
  expect_error(error);
  expect_all_has_ended(true);
}

}  // namespace
}  // namespace longhaul
