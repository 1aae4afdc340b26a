#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "longhaul/console/board/board_answers_fixture.h"
#include "longhaul/console/board/board_fixture.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/trainings/training_status.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/media/image.h"

namespace longhaul::console {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(BoardAnswersTest, ScalarsAreThoseOfTheFilesAndGrow) {
  WrittenRun run(path("a"));
  run.start(0);
  for (int64_t step = 0; step < 3; ++step) run.scalar("loss", step, 0.1 + static_cast<double>(step));
  run.flush();
  look();
  const json listed = get("/runs.json");
  EXPECT_EQ(listed["runs"][0]["name"], "a");
  EXPECT_EQ(listed["runs"][0]["scalars"][0]["last"], 2);
  EXPECT_EQ(listed["runs"][0]["scalars"][0]["kept"], 3);
  EXPECT_TRUE(listed["runs"][0]["read"]);
  EXPECT_THAT(listed["notes"], IsEmpty());
  EXPECT_EQ(curve("loss")["steps"], json({0, 1, 2}));
  EXPECT_THAT(*reply("/scalars.json", {{"tag", tag("loss")}, {"runs", "0"}}).body,
              HasSubstr("\"values\":[0.1,1.1,2.1]"));
  run.scalar("loss", 3, std::nan(""));
  run.flush();
  run.append("torn");
  look();
  EXPECT_EQ(curve("loss")["steps"], json({0, 1, 2, 3}));
  EXPECT_TRUE(curve("loss")["values"][3].is_null());
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"], IsEmpty()) << "what is being written is no damage";
}

TEST_F(BoardAnswersTest, ARestartReplacesTheStepsThatAreMadeAgainAndIsMarked) {
  write_demo_runs(directory_.path());
  look();
  const json loss = curve("loss", {{"points", "10000"}});
  std::vector<int64_t> all(1001);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(loss["steps"], json(all));
  const json restarts = get("/runs.json")["runs"][0]["restarts"];
  ASSERT_THAT(restarts, SizeIs(2));
  EXPECT_EQ(restarts[0]["step"], 400);
  EXPECT_THAT(restarts[0]["why"].get<std::string>(), HasSubstr("run 1 failed: the loss is not a number"));
  EXPECT_THAT(restarts[1]["why"].get<std::string>(), HasSubstr("run 2 killed"));
}

TEST_F(BoardAnswersTest, WithoutAJournalTheEventFilesTellOfRestarts) {
  WrittenRun run(path("a"));
  for (const int64_t from : {0, 20}) {
    run.start(from);
    for (int64_t step = from; step < from + 30; ++step) run.scalar("loss", step, 1);
  }
  run.flush();
  look();
  const json restarts = get("/runs.json")["runs"][0]["restarts"];
  ASSERT_THAT(restarts, SizeIs(1));
  EXPECT_EQ(restarts[0]["step"], 20);
  EXPECT_EQ(curve("loss")["kept"], 50);
}

TEST_F(BoardAnswersTest, AMillionPointsAreAShortReplyWithTheirPeak) {
  WrittenRun run(path("a"));
  run.start(0);
  for (int64_t step = 0; step < 1'000'000; ++step) {
    run.scalar("loss", step, step == 654'321 ? 77 : 0.5);
    if (step % 100'000 == 0) run.flush();
  }
  run.flush();
  look();
  const HttpQuery query{{"tag", tag("loss")}, {"runs", "0"}, {"points", "2000"}, {"smoothing", "0.5"}};
  const HttpReply got = reply("/scalars.json", query);
  EXPECT_LT(got.body->size(), 150'000u);
  const json curve = json::parse(*got.body)["curves"][0];
  EXPECT_EQ(curve["kept"], 1'000'000);
  EXPECT_LE(curve["steps"].size(), 2000u);
  EXPECT_LE(curve["smooth"]["steps"].size(), 2000u);
  EXPECT_EQ(*std::max_element(curve["values"].begin(), curve["values"].end()), 77);
  HttpQuery near = query;
  near["from"] = "654320";
  near["to"] = "654322";
  EXPECT_EQ(get("/scalars.json", near)["curves"][0]["steps"], json({654'319, 654'320, 654'321, 654'322, 654'323}));
}

TEST_F(BoardAnswersTest, MoreThanAMillionPointsAreThinnedOutAndThatIsTold) {
  WrittenRun run(path("a"));
  run.start(0);
  for (size_t step = 0; step <= LongCurve::kMostSamples; ++step) {
    run.scalar("loss", static_cast<int64_t>(step), step == 7 ? 9 : 1);
    if (step % 100'000 == 0) run.flush();
  }
  run.flush();
  look();
  const json listed = get("/runs.json")["runs"][0];
  EXPECT_TRUE(listed["scalars"][0]["thinned"]);
  EXPECT_EQ(listed["scalars"][0]["added"], LongCurve::kMostSamples + 1);
  EXPECT_THAT(listed["problems"].dump(), HasSubstr("thinned out"));
  const json values = curve("loss")["values"];
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 9);
}

TEST_F(BoardAnswersTest, AllThatIsKeptHasOneBoundAndThatIsTold) {
  constexpr uint64_t kBound = 1 << 20;
  for (int i = 0; i < 3; ++i) {
    WrittenRun run(path("r" + std::to_string(i)));
    run.start(0);
    for (int64_t step = 0; step < 1500; ++step) {
      for (int tag = 0; tag < 20; ++tag) run.scalar(fmt::format("s{}", tag), step, step == 77 ? 9 : 1);
      if (step < 300) run.summary(step, text_summary(fmt::format("t{}", step % 100), "x"));
    }
    run.flush();
  }
  bound(kBound);
  look();
  const json listed = get("/runs.json");
  EXPECT_THAT(listed["notes"].dump(), HasSubstr("what the board keeps of all runs has reached 1.05 MB"));
  size_t kept = 0;
  for (const json& run : listed["runs"]) {
    EXPECT_EQ(run["step"], 1499) << "each is read to its end";
    EXPECT_THAT(run["problems"].dump(), HasSubstr("thinned out"));
    EXPECT_THAT(run["scalars"], SizeIs(20));
    EXPECT_THAT(run["texts"], SizeIs(100));
    for (const json& each : run["scalars"]) kept += each["kept"].get<size_t>();
  }
  EXPECT_LE(kept * sizeof(CurveSample), kBound);
  const json values = curve("s3")["values"];
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 9);
}

TEST_F(BoardAnswersTest, PlacesOfTextsAndTheLikeAreWithinTheBound) {
  constexpr uint64_t kBound = 1 << 20;
  WrittenRun run(path("a"));
  run.start(0);
  for (int64_t step = 0; step < 256; ++step) {
    for (int tag = 0; tag < 200; ++tag) run.summary(step, text_summary(fmt::format("t{}", tag), "x"));
  }
  run.flush();
  bound(kBound);
  look();
  size_t places = 0;
  for (int tag = 0; tag < 200; ++tag) {
    const json texts = get("/texts.json", {{"run", "0"}, {"tag", std::to_string(tag)}});
    EXPECT_EQ(texts["texts"][0]["step"], 255);
    places += texts["texts"].size() + texts["earlier"].get<size_t>();
  }
  EXPECT_LE(places * sizeof(MediaPlace), kBound);
  EXPECT_THAT(get("/runs.json")["notes"].dump(), HasSubstr("what the board keeps"));
}

TEST_F(BoardAnswersTest, ACurveForWhichThereIsNoRoomIsTold) {
  WrittenRun run(path("a"));
  run.start(0);
  for (int tag = 0; tag < 1000; ++tag) run.scalar(fmt::format("s{}", tag), 1, 1);
  run.scalar("s0", 2, 2);
  run.flush();
  bound(64 << 10);
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["scalars"].size(), AllOf(Gt(50u), Lt(150u)));
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"].dump(), HasSubstr("there is no room for a further curve"));
  EXPECT_EQ(curve("s0")["steps"], json({1, 2})) << "what is there grows";
}

TEST_F(BoardAnswersTest, ManyCurvesShareTheBoundOfAReply) {
  std::string runs;
  for (int i = 0; i < 40; ++i) {
    WrittenRun run(path(fmt::format("r{:02}", i)));
    run.start(0);
    for (int64_t step = 0; step < 3000; ++step) run.scalar("loss", step, static_cast<double>(step % 7));
    run.flush();
    runs += (i > 0 ? "," : "") + std::to_string(i);
  }
  look();
  const json curves = get("/scalars.json", {{"tag", tag("loss")}, {"runs", runs}, {"points", "10000"}})["curves"];
  size_t all = 0;
  for (const json& each : curves) all += each["steps"].size();
  EXPECT_THAT(curves, SizeIs(40));
  EXPECT_LE(all, kMostDrawnSamples);
}

TEST_F(BoardAnswersTest, WhatRunsHaveIsListedOfThoseThatAreAskedFor) {
  write_demo_runs(directory_.path());
  look();
  const json one = get("/runs.json", {{"runs", "1,7"}})["runs"];
  EXPECT_FALSE(one[0].contains("scalars"));
  EXPECT_EQ(one[0]["step"], 1000);
  EXPECT_THAT(one[1]["scalars"], SizeIs(2));
  EXPECT_THAT(one[1]["images"], SizeIs(1));
  const json none = get("/runs.json", {{"runs", ""}});
  for (const json& run : none["runs"]) EXPECT_FALSE(run.contains("scalars"));
  EXPECT_THAT(none["notes"], IsEmpty());
  EXPECT_EQ(reply("/runs.json", {{"runs", "x"}}).status, 400);
}

TEST_F(BoardAnswersTest, AListIsBoundedAndThatIsTold) {
  constexpr size_t kRuns = 2 * kMostListed / kMostTags;
  for (size_t i = 0; i < kRuns; ++i) {
    WrittenRun run(path("r" + std::to_string(i)));
    run.start(0);
    for (size_t tag = 0; tag < kMostTags; ++tag) run.scalar(fmt::format("tag{}", tag), 1, 1);
    run.flush();
  }
  look();
  const json all = get("/runs.json");
  size_t listed = 0;
  for (const json& run : all["runs"]) listed += run.contains("scalars") ? run["scalars"].size() : 0;
  EXPECT_EQ(listed, kMostListed);
  EXPECT_THAT(all["notes"].dump(), HasSubstr("4 of the chosen runs have too much to list"));
  EXPECT_THAT(get("/runs.json", {{"runs", "7"}})["runs"][kRuns - 1]["scalars"], SizeIs(kMostTags));
}

TEST_F(BoardAnswersTest, ImagesHistogramsAndTextsAreThoseOfTheFiles) {
  write_demo_runs(directory_.path());
  look();
  const HttpQuery image{{"run", "0"}, {"tag", tag("input/image")}};
  const json images = get("/images.json", image)["images"];
  ASSERT_THAT(images, SizeIs(21));
  EXPECT_EQ(images[20]["step"], 1000);
  HttpQuery last = image;
  last["step"] = "1000";
  const HttpReply bytes = reply("/image", last);
  EXPECT_EQ(bytes.content_type, "image/png");
  EXPECT_EQ(decode_png(*bytes.body).shape(), Shape({24, 24, 3}));
  last["step"] = "1001";
  EXPECT_EQ(reply("/image", last).status, 404);
  const json histograms = get("/histograms.json", {{"run", "0"}, {"tag", tag("dense/weights")}});
  ASSERT_THAT(histograms["histograms"], SizeIs(21));
  const auto counts = histograms["histograms"][5]["counts"].get<std::vector<double>>();
  EXPECT_THAT(counts, SizeIs(kMostBins));
  EXPECT_NEAR(std::accumulate(counts.begin(), counts.end(), 0.0), 500, 1e-6);
  const json texts = get("/texts.json", {{"run", "0"}, {"tag", tag("sample")}})["texts"];
  EXPECT_EQ(texts[0]["text"], "step 1000: the quick brown fox");
  EXPECT_EQ(texts[0]["step"], 1000);
}

// As tf.summary.image and tf.summary.histogram of TensorFlow 2 write them.
TEST_F(BoardAnswersTest, ImagesAndHistogramsMayBeTensors) {
  WrittenRun run(path("a"));
  run.start(0);
  proto::Summary summary;
  proto::Summary::Value& image = *summary.add_value();
  image.set_tag("image");
  image.mutable_metadata()->mutable_plugin_data()->set_plugin_name("images");
  image.mutable_tensor()->set_dtype(proto::DT_STRING);
  const std::string png = encode_png(Tensor::of<uint8_t>(Shape{1, 2, 1}, {3, 4}));
  for (const std::string& text : {std::string("2"), std::string("1"), png})
    image.mutable_tensor()->add_string_val(text);
  proto::Summary::Value& histogram = *summary.add_value();
  histogram.set_tag("histogram");
  histogram.mutable_metadata()->mutable_plugin_data()->set_plugin_name("histograms");
  histogram.mutable_tensor()->set_dtype(proto::DT_DOUBLE);
  const std::vector<double> rows{0, 1, 5, 1, 2, 7};
  histogram.mutable_tensor()->set_tensor_content(rows.data(), rows.size() * sizeof(double));
  run.summary(1, summary);
  run.flush();
  look();
  EXPECT_EQ(*reply("/image", {{"run", "0"}, {"tag", tag("image")}, {"step", "1"}}).body, png);
  const json read = get("/histograms.json", {{"run", "0"}, {"tag", tag("histogram")}});
  EXPECT_EQ(read["low"], 0);
  EXPECT_EQ(read["high"], 2);
  EXPECT_EQ(read["histograms"][0]["num"], 12);
  const auto counts = read["histograms"][0]["counts"].get<std::vector<double>>();
  EXPECT_NEAR(std::accumulate(counts.begin(), counts.begin() + kMostBins / 2, 0.0), 5, 1e-6);
  EXPECT_THAT(get("/runs.json")["runs"][0]["texts"], IsEmpty());
}

TEST_F(BoardAnswersTest, AnImageOfAStepThatABrowserRoundsIsThatOne) {
  constexpr int64_t kStep = (int64_t{1} << 53) + 1;
  WrittenRun run(path("a"));
  run.start(0);
  for (const int64_t step : {kStep - 1, kStep}) {
    proto::Summary summary;
    summary.add_value()->set_tag("x");
    const Tensor pixel = Tensor::of<uint8_t>(Shape{1, 1, 1}, {static_cast<uint8_t>(step - kStep + 1)});
    summary.mutable_value(0)->mutable_image()->set_encoded_image_string(encode_png(pixel));
    run.summary(step, summary);
  }
  run.flush();
  look();
  const std::string exact = get("/images.json", {{"run", "0"}, {"tag", "0"}})["images"][1]["exact_step"];
  EXPECT_EQ(*reply("/image", {{"run", "0"}, {"tag", "0"}, {"step", exact}}).body,
            encode_png(Tensor::of<uint8_t>(Shape{1, 1, 1}, {1})));
  EXPECT_THAT(*reply("/board.js").body, HasSubstr("each.exact_step"));
}

TEST_F(BoardAnswersTest, WhatIsNoPictureIsNotSentToABrowser) {
  WrittenRun run(path("a"));
  run.start(0);
  proto::Summary summary;
  summary.add_value()->set_tag("x");
  summary.mutable_value(0)->mutable_image()->set_encoded_image_string("<svg onload=alert(1)>");
  run.summary(1, summary);
  run.flush();
  look();
  EXPECT_EQ(reply("/image", {{"run", "0"}, {"tag", tag("x")}, {"step", "1"}}).status, 415);
}

TEST_F(BoardAnswersTest, OfManyImagesSomeAreKeptAndTheNewest) {
  WrittenRun run(path("a"));
  run.start(0);
  for (int64_t step = 0; step < 1000; ++step) run.summary(step, text_summary("t", "x"));
  run.flush();
  look();
  const json texts = get("/texts.json", {{"run", "0"}, {"tag", tag("t")}});
  EXPECT_THAT(texts["texts"], SizeIs(kMostTexts));
  EXPECT_EQ(texts["texts"][0]["step"], 999);
  EXPECT_LT(texts["earlier"].get<size_t>() + kMostTexts, kMostPlaces + 1);
  EXPECT_EQ(get("/runs.json")["runs"][0]["texts"][0]["added"], 1000);
}

TEST_F(BoardAnswersTest, HostileNamesStayTextAndTwoStayTwo) {
  WrittenRun run(path("<img src=x onerror=alert(1)>\xff\n"));
  run.start(0);
  const std::string script = "</script><script>alert(1)</script>";
  for (const std::string& each : {script, std::string("a\x01\u202e\"\\"), std::string("a\x02\u202e\"\\")}) {
    run.scalar(each, 1, 1);
  }
  run.summary(3, text_summary("text", "<b>bold</b>\xff"));
  run.flush();
  look();
  const HttpReply listed = reply("/runs.json");
  EXPECT_EQ(listed.content_type, "application/json");
  const json parsed = json::parse(*listed.body);
  EXPECT_EQ(parsed["runs"][0]["name"], "<img src=x onerror=alert(1)>\\xff\\x0a");
  EXPECT_EQ(parsed["tags"], json({script, "a\\x01\\u202e\"\\", "a\\x02\\u202e\"\\", "text"}));
  EXPECT_EQ(get("/texts.json", {{"run", "0"}, {"tag", "3"}})["texts"][0]["text"], "<b>bold</b>\ufffd");
}

TEST_F(BoardAnswersTest, QueriesThatMakeNoSenseAreRefused) {
  write_demo_runs(directory_.path());
  look();
  const std::vector<std::pair<std::string, HttpQuery>> wrong{
      {"/scalars.json", {}},
      {"/scalars.json", {{"tag", "0"}}},
      {"/scalars.json", {{"tag", "0"}, {"runs", "2"}}},
      {"/scalars.json", {{"tag", "-1"}, {"runs", "0"}}},
      {"/scalars.json", {{"tag", "loss"}, {"runs", "0"}}},
      {"/scalars.json", {{"tag", "0"}, {"runs", "0"}, {"points", "1000000000"}}},
      {"/scalars.json", {{"tag", "0"}, {"runs", "0"}, {"smoothing", "1"}}},
      {"/scalars.json", {{"tag", "0"}, {"runs", "0"}, {"from", "nan"}}},
      {"/histograms.json", {{"run", "../../etc/passwd"}, {"tag", "0"}}},
      {"/image", {{"run", "0"}, {"tag", "0"}, {"step", "../x"}}},
      {"/training.json", {{"run", "/etc"}}},
      {"/options.json", {{"runs", "0,0"}}}};
  for (const auto& [path, query] : wrong) EXPECT_EQ(reply(path, query).status, 400) << path;
  for (const std::string path : {"/histograms.json", "/images.json", "/texts.json"}) {
    EXPECT_EQ(reply(path, {{"run", "0"}, {"tag", "4999"}}).status, 404) << path;
    EXPECT_EQ(reply(path, {{"run", "99"}, {"tag", "0"}}).status, 404) << path;
  }
}

TEST_F(BoardAnswersTest, TheTimeLineAndCheckpointsAreThoseOfTheCommands) {
  write_demo_runs(directory_.path());
  look();
  const json training = get("/training.json", {{"run", "0"}});
  EXPECT_EQ(training["status"]["state"], "ended");
  EXPECT_THAT(training["journal"]["runs"], SizeIs(3));
  EXPECT_EQ(training["journal"]["runs"][0]["why"], "the loss is not a number");
  EXPECT_EQ(training["journal"]["runs"][0]["lost_steps"], 20);
  EXPECT_EQ(training["events"][0]["what"], "ended");
  const json checkpoints = get("/checkpoints.json", {{"run", "0"}});
  ASSERT_THAT(checkpoints["checkpoints"], SizeIs(2));
  EXPECT_EQ(checkpoints["checkpoints"][1]["step"], 1000);
  EXPECT_TRUE(checkpoints["checkpoints"][1]["latest"]);
  EXPECT_GT(checkpoints["checkpoints"][1]["bytes"], 0);
}

// Whatever the words are, they are those of the command.
TEST_F(BoardAnswersTest, TheListHasTheStatesThatTheCommandTells) {
  const double now = clock_.wall_time();
  write_runs_in_states(directory_.path(), now);
  look();
  std::map<std::string, std::string> states, wrong, notes;
  const json runs = get("/runs.json")["runs"];
  ASSERT_THAT(runs, SizeIs(8));
  for (const json& run : runs) {
    const std::string name = run["name"];
    const json told = show_status(files_, {path(name)}, now, {}).json["directories"][0];
    if (run["state"].is_null()) {
      EXPECT_EQ(told["state"], "no training") << name;
      continue;
    }
    EXPECT_EQ(run["state"], told["state"]) << name;
    EXPECT_EQ(run["wrong"], told["problems"]) << name;
    EXPECT_EQ(run["notes"], told["notes"]) << name;
    states[name] = run["state"];
    wrong[name] = run["wrong"].dump();
    notes[name] = run["notes"].dump();
  }
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"ended", "ended"},
                                                        {"failed", "failed"},
                                                        {"hangs", "training"},
                                                        {"killed", "killed"},
                                                        {"preempted", "ended"},
                                                        {"saves_fail", "training"},
                                                        {"trains", "training"}}));
  EXPECT_THAT(wrong["failed"], HasSubstr("run 1 failed: the loss is not a number"));
  EXPECT_THAT(wrong["hangs"], HasSubstr("it hangs: at "));
  EXPECT_THAT(wrong["killed"], HasSubstr("is dead and did not end by itself"));
  EXPECT_THAT(wrong["saves_fail"], HasSubstr("3 saves in a row have failed: model.ckpt-600: No space left"));
  EXPECT_EQ(wrong["trains"] + wrong["ended"], "[][]");
  EXPECT_THAT(notes["preempted"], HasSubstr("it stopped: preempted, to be started again"));
}

TEST_F(BoardAnswersTest, AStateThatChangesIsSeenWithinTenSeconds) {
  const double now = clock_.wall_time();
  write_runs_in_states(directory_.path(), now);
  look();
  const auto trains = [&] { return get("/runs.json")["runs"][7]; };
  ASSERT_EQ(trains()["name"], "trains");
  EXPECT_EQ(trains()["state"], "training");
  std::filesystem::remove(owner_path(path("trains")));
  clock_.advance(Seconds{10});
  look();
  EXPECT_EQ(trains()["state"], "killed");
  EXPECT_THAT(trains()["wrong"].dump(), HasSubstr("run 1 has no end"));
  std::filesystem::remove_all(path("trains"));
  look();
  EXPECT_TRUE(trains()["gone"]);
  EXPECT_TRUE(trains()["state"].is_null());
}

TEST_F(BoardAnswersTest, OptionsAreWhatTheNewestCheckpointRecords) {
  write_demo_runs(directory_.path());
  WrittenRun bare(path("without"));
  bare.start(0);
  bare.flush();
  look();
  const json two = get("/options.json", {{"runs", "0,1"}});
  EXPECT_EQ(two["runs"][0]["source"], "model.ckpt-1000");
  std::map<std::string, json> rows;
  for (const json& row : two["options"]) rows[row["name"]] = row;
  EXPECT_EQ(rows["option rate"]["values"], json({"0.02", "0.06"}));
  EXPECT_TRUE(rows["option rate"]["differs"]);
  EXPECT_FALSE(rows["option batch_size"]["differs"]);
  EXPECT_TRUE(rows["threads"]["differs"]);
  EXPECT_EQ(rows["host"]["values"], json({"train-3", "train-3"}));
  const json with_bare = get("/options.json", {{"runs", "0,2"}})["options"];
  EXPECT_THAT(with_bare, Not(IsEmpty()));
  for (const json& row : with_bare) {
    EXPECT_TRUE(row["values"][1].is_null());
    EXPECT_TRUE(row["differs"]);
    EXPECT_FALSE(row["recorded_differs"]) << "that one run lacks it says nothing of its value";
  }
  EXPECT_TRUE(rows["option rate"]["recorded_differs"]);
}

TEST_F(BoardAnswersTest, TagsBeyondTheBoundAreTold) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar(std::string(kMostTagBytes + 1, 'x'), 1, 1);
  for (size_t i = 0; i <= kMostTags; ++i) run.scalar("tag" + std::to_string(i), 1, 1);
  run.flush();
  look();
  EXPECT_EQ(runs_->tags().count(), kMostTags);
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"].dump(), HasSubstr("2 values are left out"));
}

TEST_F(BoardAnswersTest, ThePageLoadsNothingFromElsewhere) {
  look();
  for (const std::string file : {"/", "/board.css", "/shared.js", "/board.js", "/dygraph.css"}) {
    const std::string text = *reply(file).body;
    EXPECT_THAT(text, AllOf(Not(IsEmpty()), Not(HasSubstr("http://")), Not(HasSubstr("https://")))) << file;
  }
  EXPECT_THAT(*reply("/").body,
              AllOf(HasSubstr("name=\"viewport\""), Not(HasSubstr("<script>")), Not(HasSubstr("style="))));
  EXPECT_THAT(*reply("/board.js").body, AllOf(Not(HasSubstr("innerHTML")), Not(HasSubstr("eval("))));
  EXPECT_THAT(*reply("/dygraph.js").body, HasSubstr("dygraphs"));
  EXPECT_THAT(*reply("/dygraph-licence.txt").body, HasSubstr("Permission is hereby granted"));
}

}  // namespace
}  // namespace longhaul::console
