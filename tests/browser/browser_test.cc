// The pages of the command longhaul board and of a training's process, as a browser shows them: what is drawn is
// compared with what is in the files, and no page complains.
//
// With LONGHAUL_WRITE_PICTURES set it also writes the pictures of docs/guide/board.md.
#include "tests/browser/browser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "longhaul/console/board/board_fixture.h"
#include "longhaul/console/board/board_server.h"
#include "longhaul/console/trainings/run_listing.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/train/status/status_page.h"

namespace longhaul {
namespace {

using console::WrittenRun;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Points = std::map<int64_t, float>;

// What a run's files have of a tag, by another reader than the board's: a START drops what it makes again.
Points points_in(const std::string& directory, const std::string& tag) {
  Points points;
  for (const std::string& path : event_files(directory)) {
    EventReader reader(path);
    while (const auto event = reader.next()) {
      if (event->has_session_log()) points.erase(points.lower_bound(event->step()), points.end());
      for (const auto& value : event->summary().value()) {
        if (value.tag() == tag) points[event->step()] = value.simple_value();
      }
    }
  }
  return points;
}

Points points_of(const json& series) {
  Points points;
  for (const json& point : series["points"]) points[point[0]] = point[1].get<float>();
  return points;
}

class BrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("browser", testing::Browser::is_there(), "chromium and chromium-driver are not installed");
    browser_ = std::make_unique<testing::Browser>();
    ASSERT_TRUE(browser_->is_open());
    browser_->look(1200, 480, false);
  }
  void TearDown() override {
    if (browser_ != nullptr) {
      EXPECT_THAT(browser_->errors(), IsEmpty());
    }
    browser_.reset();
    board_.reset();
  }

  std::string path(const std::string& name) const { return directory_.file(name); }
  void open(const std::string& section = "") {
    if (board_ == nullptr) {
      board_ = std::make_unique<console::BoardServer>(
          FileSystem::real(), console::BoardOptions{.directories = {directory_.path()}, .port = 0});
      board_->start();
    }
    browser_->open(board_->url() + section);
    ASSERT_TRUE(browser_->until("board.data() && board.data().read && board.data().runs.every(r => r.read)"));
  }
  // That curve as it was drawn, of a kind "raw" or "smooth".
  json series(const std::string& tag, int64_t run, const std::string& kind = "raw") {
    for (const json& chart : browser_->run("return board.drawn()")) {
      if (chart["tag"] != tag) continue;
      for (const json& each : chart["series"]) {
        if (each["run"] == run && each["kind"] == kind) return each;
      }
    }
    ADD_FAILURE() << "no curve " << tag << " of run " << run;
    return {{"points", json::array()}};
  }
  void until_drawn(const std::string& tag, size_t curves) {
    ASSERT_TRUE(browser_->until(
        fmt::format("board.drawn().some(c => c.tag === {} && c.series.length === {})", json(tag).dump(), curves)));
  }
  // How much of the height of the plot of "loss" has the colour of that run, at that step: a curve has little of it, a
  // dashed line half.
  double share_of_colour(int64_t run, int64_t step) {
    return browser_
        ->run(fmt::format(
            "const chart = board.chart('loss'), area = chart.graph.getArea(), scale = window.devicePixelRatio;"
            "const x = Math.round(chart.graph.toDomXCoord({})), colour = getComputedStyle("
            "    document.querySelectorAll('#runs .swatch')[{}]).backgroundColor.match(/\\d+/g).map(Number);"
            "const rows = new Set();"
            "for (const canvas of chart.plot.querySelectorAll('canvas')) {{"
            "  const width = 3 * scale, part = canvas.getContext('2d').getImageData((x - 1) * scale, area.y * scale,"
            "      width, area.h * scale).data;"
            "  for (let i = 0; i < part.length; i += 4) {{"
            "    if (part[i + 3] > 100 && colour.every((c, j) => Math.abs(c - part[i + j]) < 40))"
            "      rows.add(Math.floor(i / 4 / width));"
            "  }}"
            "}}"
            "return rows.size / (area.h * scale);",
            step, run))
        .get<double>();
  }
  std::string text() { return browser_->run("return document.querySelector('main').innerText"); }
  void keep_screenshot(const std::string& name) {
    const std::string bytes = browser_->screenshot();
    EXPECT_GT(bytes.size(), 1000u);
    if (std::getenv("LONGHAUL_WRITE_PICTURES") == nullptr) return;
    std::ofstream(join_path(LONGHAUL_PICTURES, name), std::ios::binary) << bytes;
  }

  testing::TemporaryDirectory directory_;
  std::unique_ptr<console::BoardServer> board_;
  std::unique_ptr<testing::Browser> browser_;
};

TEST_F(BrowserTest, CurvesAreThoseOfTheFilesAndRestartsAreMarked) {
  console::write_demo_runs(directory_.path());
  open();
  until_drawn("loss", 2);
  for (const auto& [number, name] : std::map<int64_t, std::string>{{0, "baseline"}, {1, "faster"}}) {
    const Points written = points_in(path(name), "loss"), drawn = points_of(series("loss", number));
    EXPECT_GT(drawn.size(), 200u);
    for (const auto& [step, value] : drawn) {
      ASSERT_TRUE(written.contains(step)) << step;
      ASSERT_FLOAT_EQ(value, written.at(step)) << step;
    }
    const auto by_value = [](const auto& a, const auto& b) { return a.second < b.second; };
    EXPECT_EQ(*std::max_element(drawn.begin(), drawn.end(), by_value),
              *std::max_element(written.begin(), written.end(), by_value));
    EXPECT_EQ(drawn.rbegin()->first, written.rbegin()->first);
  }
  const json chart = browser_->run("return board.drawn().find(c => c.tag === 'loss')");
  EXPECT_EQ(chart["marks"], json({{0, 400}, {0, 700}}));
  // The canvas has the colours of both runs where their curves are.
  for (const int64_t number : {0, 1}) {
    const json point = series("loss", number)["points"][100];
    const json count = browser_->run(
        fmt::format("const chart = board.chart('loss'), [x, y] = chart.graph.toDomCoords({}, {});"
                    "const scale = window.devicePixelRatio, colour = getComputedStyle("
                    "    document.querySelectorAll('#runs .swatch')[{}]).backgroundColor.match(/\\d+/g).map(Number);"
                    "let found = 0;"
                    "for (const canvas of chart.plot.querySelectorAll('canvas')) {{"
                    "  const part = canvas.getContext('2d').getImageData(x * scale - 4, y * scale - 4, 9, 9).data;"
                    "  for (let i = 0; i < part.length; i += 4) {{"
                    "    if (part[i + 3] > 200 && colour.every((c, j) => Math.abs(c - part[i + j]) < 40)) ++found;"
                    "  }}"
                    "}}"
                    "return found;",
                    point[0].dump(), point[1].dump(), number));
    EXPECT_GT(count.get<int>(), 3) << "run " << number << " is not drawn at " << point;
  }
  keep_screenshot("board.png");
}

// Of a run with a journal, by `longhaul runs`; of the others by the STARTs of the event files.
std::set<std::pair<int64_t, int64_t>> marks_in(const std::string& directory, int64_t run) {
  std::set<std::pair<int64_t, int64_t>> marks;
  try {
    const console::Json journal = console::list_runs(FileSystem::real(), {.directory = directory}, 0, {}).json;
    for (size_t i = 1; i < journal["runs"].size(); ++i) marks.emplace(run, journal["runs"][i]["from_step"]);
    for (const auto& rollback : journal["rollbacks"]) marks.emplace(run, rollback["restored_step"]);
    return marks;
  } catch (const NotFoundError&) {
  }
  for (const std::string& path : event_files(directory)) {
    EventReader reader(path);
    while (const auto event = reader.next()) {
      if (event->has_session_log() && event->step() > 0) marks.emplace(run, event->step());
    }
  }
  return marks;
}

TEST_F(BrowserTest, MarksAreTheRestartsAndRollbacksOfTheFiles) {
  console::write_run_with_rollback(path("journal"));
  WrittenRun events(path("without"));
  for (const int64_t from : {0, 150}) {
    events.start(from);
    for (int64_t step = from; step < from + 300; ++step) events.scalar("loss", step, 0.5);
  }
  events.flush();
  browser_->look(1200, 480, false);
  open();
  until_drawn("loss", 2);
  auto written = marks_in(path("journal"), 0);
  EXPECT_THAT(written, SizeIs(2)) << "a restart and a rollback";
  written.merge(marks_in(path("without"), 1));
  EXPECT_THAT(written, SizeIs(3));
  std::set<std::pair<int64_t, int64_t>> drawn;
  const json chart = browser_->run("return board.drawn().find(c => c.tag === 'loss')");
  for (const json& mark : chart["marks"]) drawn.emplace(mark[0], mark[1]);
  EXPECT_EQ(drawn, written);
  for (const auto& [run, step] : written) EXPECT_GT(share_of_colour(run, step), 0.3) << run << " at " << step;
  EXPECT_LT(share_of_colour(0, 250), 0.1) << "there is none";

  const json place =
      browser_->run("const chart = board.chart('loss'); return chart.graph.toDomXCoord(430) / chart.plot.clientWidth");
  browser_->point_at(".plot", place.get<double>());
  EXPECT_TRUE(
      browser_->until("document.querySelector('.readout').textContent.includes("
                      "'journal went back at step 430 (from step 451, where the loss went bad)')"))
      << browser_->run("return document.querySelector('.readout').textContent");
}

TEST_F(BrowserTest, ARestartSaysWhyAndACurveItsValue) {
  console::write_demo_runs(directory_.path());
  open();
  until_drawn("accuracy", 2);
  EXPECT_TRUE(browser_->until("document.querySelector('.readout').textContent.includes('baseline 0.98')"));
  const json place = browser_->run(
      "const chart = board.chart('accuracy'); return chart.graph.toDomXCoord(400) / chart.plot.clientWidth");
  browser_->point_at(".plot", place.get<double>());
  ASSERT_TRUE(browser_->until("document.querySelector('.readout').textContent.includes('began again')"));
  const std::string told = browser_->run("return document.querySelector('.readout').textContent");
  EXPECT_THAT(told, HasSubstr("baseline began again at step 400 (run 1 failed: the loss is not a number)"));
  const Points written = points_in(path("faster"), "accuracy");
  const std::string label = browser_->run("return document.querySelector('.readout b').textContent");
  const json value = browser_->run(fmt::format("return board.chart('accuracy').graph.selPoints_.map(p => p.yval)"));
  EXPECT_FLOAT_EQ(value[1].get<float>(), written.at(std::stoll(label.substr(5)))) << label;
}

TEST_F(BrowserTest, AnImageStaysWhileNewOnesCome) {
  WrittenRun run(path("a"));
  run.start(0);
  const auto add = [&](int64_t step) {
    run.summary(step, image_summary("x", Tensor::of<uint8_t>(Shape{1, 1, 1, 1}, {static_cast<uint8_t>(step)}), 1));
    run.flush();
  };
  for (const int64_t step : {1, 2, 3}) add(step);
  open("#images");
  ASSERT_TRUE(browser_->until("document.querySelector('figure img').src.endsWith('step=3')"));
  add(4);
  ASSERT_TRUE(browser_->until("document.querySelector('figure img').src.endsWith('step=4')"));
  browser_->run("const slider = document.querySelector('figure input'); slider.value = 1; slider.oninput();");
  add(5);
  ASSERT_TRUE(browser_->until("document.querySelector('figure input').max === '4'"));
  EXPECT_TRUE(browser_->until("document.querySelector('figure img').src.endsWith('step=2')"));
}

TEST_F(BrowserTest, AZoomShowsEachPointAndADoubleClickAllOfThem) {
  WrittenRun run(path("a"));
  run.start(0);
  for (int64_t step = 0; step < 1'000'000; ++step) run.scalar("loss", step, std::sin(static_cast<double>(step) / 1e5));
  run.flush();
  open();
  until_drawn("loss", 1);
  const size_t before = series("loss", 0)["points"].size();
  EXPECT_LE(before, 10000u);
  for (int i = 0; i < 4; ++i) {
    const std::string key = browser_->run("return board.chart('loss').key");
    browser_->drag(".plot", 0.5, 0.56);
    ASSERT_TRUE(browser_->until(
        fmt::format("board.chart('loss').key !== {} && !board.chart('loss').isBusy", json(key).dump())));
  }
  const json window = browser_->run("return board.chart('loss').window");
  const auto from = window[0].get<double>(), to = window[1].get<double>();
  EXPECT_LT(to - from, 1000);
  const Points drawn = points_of(series("loss", 0));
  for (auto step = static_cast<int64_t>(std::ceil(from)); step <= static_cast<int64_t>(to); ++step) {
    ASSERT_TRUE(drawn.contains(step)) << step;
    ASSERT_FLOAT_EQ(drawn.at(step), static_cast<float>(std::sin(static_cast<double>(step) / 1e5)));
  }
  browser_->double_click(".plot");
  ASSERT_TRUE(browser_->until("board.chart('loss').window === null && board.drawn()[0].series[0].points[0][0] === 0"));
  EXPECT_EQ(points_of(series("loss", 0)).rbegin()->first, 999'999);
}

TEST_F(BrowserTest, SmoothingIsDrawnOverTheCurve) {
  console::write_demo_runs(directory_.path());
  open();
  until_drawn("loss", 2);
  browser_->run("const s = document.querySelector('#smoothing'); s.value = 0.9; s.oninput();");
  until_drawn("loss", 4);
  const Points written = points_in(path("baseline"), "loss"), drawn = points_of(series("loss", 0, "smooth"));
  double mean = 0, weights = 0;
  for (const auto& [step, value] : written) {
    mean = 0.9 * mean + 0.1 * static_cast<double>(value);
    weights = 0.9 * weights + 0.1;
    if (!drawn.contains(step)) continue;
    ASSERT_NEAR(drawn.at(step), mean / weights, 1e-5) << step;
  }
  EXPECT_GT(drawn.size(), 200u);
}

TEST_F(BrowserTest, WhatIsWrittenMeanwhileAppears) {
  WrittenRun run(path("a"));
  run.start(0);
  for (int64_t step = 0; step < 10; ++step) run.scalar("loss", step, 1);
  run.flush();
  open();
  until_drawn("loss", 1);
  for (int64_t step = 10; step < 20; ++step) run.scalar("loss", step, 2);
  run.flush();
  EXPECT_TRUE(browser_->until("board.drawn()[0].series[0].points.length === 20"));
  EXPECT_EQ(points_of(series("loss", 0)), points_in(path("a"), "loss"));
  WrittenRun other(path("b"));
  other.start(0);
  other.scalar("loss", 1, 3);
  other.flush();
  EXPECT_TRUE(browser_->until("board.drawn()[0].series.length === 2"));
}

TEST_F(BrowserTest, ImagesHistogramsAndTextsAreThoseOfTheFiles) {
  console::write_demo_runs(directory_.path());
  open("#images");
  EXPECT_TRUE(
      browser_->until("[...document.querySelectorAll('figure img')].filter(i => i.naturalWidth === 24).length === 2"));
  EXPECT_THAT(text(), AllOf(HasSubstr("input/image"), HasSubstr("step 1000"), HasSubstr("step 600")));
  open("#histograms");
  ASSERT_TRUE(browser_->until("board.histograms().length === 2"));
  const json histogram = browser_->run("return board.histograms().find(h => h.run === 0)");
  ASSERT_THAT(histogram["histograms"], SizeIs(21));
  double count = 0;
  for (const json& each : histogram["histograms"][20]["counts"]) count += each.get<double>();
  EXPECT_NEAR(count, 500, 1e-6);
  EXPECT_GT(browser_->run("const c = document.querySelector('canvas.ridges');"
                          "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter(v => v).length"),
            1000);
  open("#texts");
  EXPECT_TRUE(browser_->until("document.querySelector('main').innerText.includes('the quick brown fox')"));
}

TEST_F(BrowserTest, TimeLinesCheckpointsAndOptionsAreShown) {
  console::write_demo_runs(directory_.path());
  open("#timeline");
  ASSERT_TRUE(browser_->until("document.querySelectorAll('.bar').length === 2"));
  EXPECT_EQ(browser_->run("return document.querySelectorAll('.bar')[0].children.length"), 3);
  EXPECT_THAT(text(), AllOf(HasSubstr("failed: the loss is not a number"), HasSubstr("goodput"), HasSubstr("train-3")));
  keep_screenshot("board_timeline.png");
  open("#checkpoints");
  ASSERT_TRUE(browser_->until("document.querySelectorAll('table').length === 2"));
  EXPECT_THAT(text(), AllOf(HasSubstr("model.ckpt-1000"), HasSubstr("latest"), HasSubstr("model.ckpt-600")));
  open("#options");
  ASSERT_TRUE(browser_->until("document.querySelector('table')"));
  EXPECT_THAT(text(), AllOf(HasSubstr("option rate"), HasSubstr("0.06"), Not(HasSubstr("option batch_size"))));
}

TEST_F(BrowserTest, HostileNamesAndTextsRunNothing) {
  WrittenRun run(path("<img src=x onerror='window.hacked=1'>"));
  run.start(0);
  const std::string hostile = "<script>window.hacked=2</script><img src=x onerror='window.hacked=3'>";
  run.scalar(hostile, 1, 1);
  run.scalar(hostile, 2, 2);
  run.summary(1, text_summary("text", hostile));
  run.checkpoint(1, {{hostile, hostile}});
  run.tell({.kind = RunEvent::Kind::kBegan, .time = 1763721934, .text = "process 7 started 1 boot b host <b>h</b>"});
  run.tell({.kind = RunEvent::Kind::kFailed, .time = 1763721954, .text = hostile});
  run.flush();
  open();
  until_drawn(hostile, 1);
  EXPECT_THAT(text(), HasSubstr(hostile));
  for (const std::string section : {"texts", "timeline", "checkpoints", "options"}) {
    browser_->run("location.hash = '" + section + "'");
    ASSERT_TRUE(browser_->until("document.querySelector('#content pre, #content table')")) << section;
  }
  EXPECT_EQ(browser_->run("return window.hacked === undefined && !document.querySelector('img')"), true);
}

TEST_F(BrowserTest, TheListTellsHowEachRunStandsInTextAlsoOnAPhone) {
  console::write_runs_in_states(directory_.path(), Clock::real().wall_time());
  browser_->look(390, 760, false, 1.5);
  open();
  browser_->run("document.querySelector('#choice').open = true");
  ASSERT_TRUE(browser_->until("document.querySelectorAll('#runs .state').length === 8"));
  const json told = browser_->run("return board.data().runs");
  const json shown = browser_->run(
      "return [...document.querySelectorAll('#runs li')].map(li => {"
      "  const state = li.querySelector('.state'), style = getComputedStyle(state);"
      "  return {name: li.querySelector('span:not(.swatch)').textContent, text: state.innerText,"
      "    isVisible: state.getClientRects().length > 0, right: state.getBoundingClientRect().right,"
      "    size: parseFloat(style.fontSize)}})");
  ASSERT_THAT(shown, SizeIs(8));
  for (size_t i = 0; i < shown.size(); ++i) {
    const std::string name = shown[i]["name"], text = shown[i]["text"];
    EXPECT_EQ(name, told[i]["name"]);
    EXPECT_EQ(shown[i]["isVisible"], name != "events") << name;
    if (name == "events") continue;
    const std::string state = told[i]["state"];
    EXPECT_EQ(text.substr(0, state.size()), state) << name;
    EXPECT_EQ(text.find(", wrong: ") != text.npos, !told[i]["wrong"].empty()) << name << ": " << text;
    EXPECT_LE(shown[i]["right"].get<double>(), 390) << name;
    EXPECT_GE(shown[i]["size"].get<double>(), 11) << name;
  }
  const std::string list = browser_->run("return document.querySelector('#runs').innerText");
  EXPECT_THAT(list, AllOf(HasSubstr("training, wrong: it hangs: at "), HasSubstr("training, wrong: 3 saves in a row"),
                          HasSubstr("failed, wrong: run 1 failed: the loss is not a number"),
                          HasSubstr("killed, wrong: the chief, process "),
                          HasSubstr("ended, it stopped: preempted, to be started again")));
  EXPECT_THAT(browser_->run("return document.querySelector('#state').textContent").get<std::string>(),
              HasSubstr("8 runs, something is wrong with 4"));
  EXPECT_EQ(browser_->run("return document.documentElement.scrollWidth <= window.innerWidth"), true);
}

TEST_F(BrowserTest, FitsAPhoneAndTheDark) {
  console::write_demo_runs(directory_.path());
  browser_->look(390, 760, true, 1.5);
  open();
  until_drawn("loss", 2);
  EXPECT_EQ(browser_->run("return document.documentElement.scrollWidth <= window.innerWidth"), true);
  const json colours = browser_->run(
      "const s = getComputedStyle(document.body), light = c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, "
      "0);"
      "return [light(s.backgroundColor), light(s.color)]");
  EXPECT_LT(colours[0], 200);
  EXPECT_GT(colours[1], 500);
  keep_screenshot("board_phone.png");
  for (const std::string section : {"timeline", "options", "checkpoints", "histograms"}) {
    browser_->run("location.hash = '" + section + "'");
    ASSERT_TRUE(browser_->until("document.querySelector('#content table, #content canvas')")) << section;
    EXPECT_EQ(browser_->run("return document.documentElement.scrollWidth <= window.innerWidth"), true) << section;
  }
}

TEST_F(BrowserTest, ABoardThatEndsIsTold) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar("loss", 1, 1);
  run.flush();
  open();
  EXPECT_THAT(browser_->errors(), IsEmpty());
  board_->stop();
  EXPECT_TRUE(browser_->until("document.querySelector('#state').textContent.includes('does not answer')"));
  browser_->errors();  // that nothing is there
}

TEST_F(BrowserTest, TheStatusPageOfAProcessDrawsItsCurves) {
  StatusPage page({.page = {.address = "127.0.0.1:0", .last_step = 100}, .directory = directory_.path()}, {});
  page.begin();
  page.status()->begins(nullptr);
  page.status()->trains();
  page.status()->follow_scalars(directory_.path());
  page.status()->look(50);
  FileWriter writer(directory_.path());
  for (int64_t step = 0; step <= 50; ++step) {
    writer.add_summary(scalar_summary("loss", 1 / static_cast<float>(step + 1)), step);
  }
  writer.flush();
  browser_->open(fmt::format("http://127.0.0.1:{}/", page.port()));
  ASSERT_TRUE(browser_->until("document.querySelector('#curves svg path')"));
  EXPECT_THAT(browser_->run("return document.querySelector('#curves figcaption').textContent").get<std::string>(),
              AllOf(HasSubstr("loss, from 0.0196"), HasSubstr("steps 0 to 50")));
  // From the upper left to the lower right corner, a corner for each value.
  EXPECT_THAT(browser_->run("return document.querySelector('#curves path').getAttribute('d')").get<std::string>(),
              AllOf(::testing::StartsWith("M0.0 4.0"), HasSubstr("L300.0 96.0")));
  EXPECT_TRUE(browser_->until("document.querySelector('#phase').textContent === 'training'"));
  EXPECT_THAT(browser_->run("return document.querySelector('#progress').innerText").get<std::string>(),
              HasSubstr("50 of 100"));
  page.end();
}

}  // namespace
}  // namespace longhaul
