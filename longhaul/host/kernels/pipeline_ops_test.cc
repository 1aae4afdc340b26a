#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "longhaul/host/list_fixture.h"
#include "longhaul/io/records/record.h"
#include "longhaul/ops/input/parsing_ops.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/input/reader_ops.h"
#include "longhaul/ops/input/row_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/proto/example.pb.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/scripted_session.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Strings = std::vector<std::string>;

class PipelineOpsTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& contents) {
    write_file_atomically(FileSystem::real(), directory.file(name), contents);
    return directory.file(name);
  }
  void enqueue(const Strings& names) {
    session.run(files.enqueue_many(root, {ops::constant(root, Tensor::of(names))}));
  }
  void close() { session.run(files.close(root)); }
  Output strings(const Strings& values) { return ops::constant(root, Tensor::of(values)); }

  testing::TemporaryDirectory directory;
  Graph graph;
  Scope root{graph};
  FIFOQueue files{root, 10, {kString}, {.shapes = {{}}}};
  testing::ScriptedSession session{graph};
};

TEST_F(PipelineOpsTest, AReaderTakesFileNamesFromItsQueue) {
  const std::string a = write("a", "1\n2\n"), b = write("b", "3\n");
  const Output reader = ops::text_line_reader(root);
  const auto [key, value] = ops::read(root, reader, files);
  EXPECT_EQ(value.shape(), Shape{});
  enqueue({a, b});
  close();
  EXPECT_EQ(session.run(value).item<std::string>(), "1");
  EXPECT_EQ(session.run(ops::num_work_units_completed(root, reader)).item<int64_t>(), 0);
  EXPECT_EQ(session.run(key).item<std::string>(), a + ":2");
  EXPECT_EQ(session.run(value).item<std::string>(), "3");
  EXPECT_THROW(session.run(value), OutOfRangeError);
  EXPECT_EQ(session.run(ops::num_records_produced(root, reader)).item<int64_t>(), 3);
  EXPECT_EQ(session.run(ops::num_work_units_completed(root, reader)).item<int64_t>(), 2);
}

TEST_F(PipelineOpsTest, ReadersOfAllKindsCanBeMade) {
  std::string records;
  append_record(records, "r");
  const std::string file = write("a", records);
  const std::vector<std::pair<Output, std::string>> readers{
      {ops::tf_record_reader(root), "r"},
      {ops::fixed_length_record_reader(root, 1, {.header_bytes = 12, .footer_bytes = 4}), "r"},
      {ops::whole_file_reader(root), records},
      {ops::identity_reader(root), file}};
  for (const auto& [reader, contents] : readers) {
    enqueue({file});
    EXPECT_EQ(session.run(ops::read(root, reader, files).value).item<std::string>(), contents);
  }
}

TEST_F(PipelineOpsTest, AReaderOfASharedNameIsOneReader) {
  const auto first = ops::read(root, ops::identity_reader(root, "shared"), files);
  const Output second = ops::identity_reader(root, "shared");
  enqueue({"x"});
  session.run(first.value);
  EXPECT_EQ(session.run(ops::num_records_produced(root, second)).item<int64_t>(), 1);
}

TEST_F(PipelineOpsTest, AReadersStateCanBeKeptAndRestored) {
  const Output reader = ops::text_line_reader(root);
  const Output value = ops::read(root, reader, files).value;
  const Output state = ops::serialize_state(root, reader), given = ops::placeholder(root, kString, {});
  const Operation restore = ops::restore_state(root, reader, given), reset = ops::reset(root, reader);
  enqueue({write("a", "1\n2\n3\n"), write("b", "4\n")});
  session.run(value);
  const Tensor kept = session.run(state);
  EXPECT_EQ(session.run(value).item<std::string>(), "2");
  session.run(reset);
  EXPECT_EQ(session.run(value).item<std::string>(), "4");
  session.run(restore, {{given, kept}});
  EXPECT_EQ(session.run(value).item<std::string>(), "2");
  EXPECT_THAT(refusal_of([&] { session.run(restore, {{given, Tensor::scalar("\xff")}}); }),
              HasSubstr("Could not parse state for TextLineReader"));
}

TEST_F(PipelineOpsTest, AWaitForAFileEndsWithTheRunsTimeout) {
  const Output value = ops::read(root, ops::text_line_reader(root), files).value;
  EXPECT_THROW(session.run(value, Feeds{}, {.timeout = Seconds{0.01}}), DeadlineExceededError);
}

TEST_F(PipelineOpsTest, AMalformedLineIsNamedByFileLineAndColumn) {
  const std::string a = write("a.csv", "1,2\n3,four\n");
  const auto [keys, lines] = ops::read_up_to(root, ops::text_line_reader(root), files, 10);
  const auto columns =
      ops::decode_csv(root, lines, {ops::required_column(kInt64), Tensor::scalar(0.0f)}, {.keys = keys});
  EXPECT_EQ(columns[1].shape(), Shape{-1});
  enqueue({a});
  close();
  EXPECT_THAT(refusal_of([&] { session.run(columns[1]); }),
              HasSubstr("DecodeCSV: " + a + ":2, column 2: \"four\" is not a valid float"));
}

TEST_F(PipelineOpsTest, LinesBecomeColumnsInOneRun) {
  const Output lines = ops::read_values_up_to(root, ops::text_line_reader(root), files, 2);
  const auto columns = ops::decode_csv(root, lines, {Tensor::scalar<int32_t>(7), Tensor::scalar("")},
                                       {.field_delim = ';', .select_cols = {0, 2}});
  enqueue({write("a", "1;x;a\n;y;b\n3;z;c\n")});
  close();
  const auto first = session.run({columns[0], columns[1]});
  EXPECT_THAT(list<int32_t>(first[0]), ElementsAre(1, 7));
  EXPECT_THAT(list<std::string>(first[1]), ElementsAre("a", "b"));
  EXPECT_THAT(list<int32_t>(session.run(columns[0])), ElementsAre(3));
  EXPECT_THROW(session.run(columns[0]), OutOfRangeError);
}

TEST_F(PipelineOpsTest, ExamplesBecomeTensorsByKey) {
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"].mutable_float_list()->add_value(1.5f);
  features["tags"].mutable_bytes_list()->add_value("a");
  features["path"].mutable_int64_list()->add_value(3);
  const Features wanted{{"x", FixedLenFeature{kFloat, {1}, {}}},
                        {"y", FixedLenFeature{kInt64, {}, Tensor::scalar<int64_t>(9)}},
                        {"tags", VarLenFeature{kString}},
                        {"path", FixedLenSequenceFeature{kInt64, {}, {}}}};
  const Output serialized = strings({example.SerializeAsString(), example.SerializeAsString()});
  const ParsedFeatures batch = ops::parse_example(root, serialized, wanted);
  EXPECT_EQ(batch.dense.at("x").shape(), (Shape{2, 1}));
  EXPECT_EQ(batch.dense.at("path").shape(), (Shape{2, -1}));
  EXPECT_THAT(list<float>(session.run(batch.dense.at("x"))), ElementsAre(1.5f, 1.5f));
  EXPECT_THAT(list<int64_t>(session.run(batch.dense.at("y"))), ElementsAre(9, 9));
  EXPECT_THAT(list<int64_t>(session.run(batch.sparse.at("tags").indices)), ElementsAre(0, 0, 1, 0));
  const Output one = ops::constant(root, Tensor::scalar(example.SerializeAsString()));
  const ParsedFeatures single = ops::parse_example(root, one, wanted);
  EXPECT_THAT(list<int64_t>(session.run(single.dense.at("path"))), ElementsAre(3));
  EXPECT_EQ(session.run(single.dense.at("y")).shape(), Shape{});
  const Output names = strings({"first", "second"});
  const ParsedFeatures wrong = ops::parse_example(root, serialized, {{"x", FixedLenFeature{kInt64, {}, {}}}}, names);
  EXPECT_THAT(refusal_of([&] { session.run(wrong.dense.at("x")); }), HasSubstr("example first: feature x: "));
}

TEST_F(PipelineOpsTest, SparseTensorsGoThroughStrings) {  // IN-8
  const SparseOutput sparse{ops::constant(root, Tensor::of<int64_t>(Shape{2, 2}, {0, 1, 1, 0})),
                            ops::constant(root, Tensor::of<float>({1, 2})),
                            ops::constant(root, Tensor::of<int64_t>({2, 2}))};
  const SparseOutput back = ops::deserialize_many_sparse(root, ops::serialize_many_sparse(root, sparse), kFloat, 1);
  EXPECT_EQ(back.indices.shape(), (Shape{-1, 2}));
  EXPECT_THAT(list<int64_t>(session.run(back.indices)), ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(ops::serialize_sparse(root, sparse).shape(), Shape{3});
}

TEST_F(PipelineOpsTest, BytesAndTextsBecomeNumbers) {
  EXPECT_THAT(list<uint8_t>(session.run(ops::decode_raw(root, strings({"ab", "cd"}), kUInt8))),
              ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(list<int32_t>(session.run(ops::string_to_number(root, strings({"1", "2"}), kInt32))), ElementsAre(1, 2));
}

TEST_F(PipelineOpsTest, FilesAreMatchedAndRead) {
  const std::string b = write("b.txt", "contents"), a = write("a.txt", ""), c = write("c.csv", "");
  const auto matching = [&](const Strings& patterns) {
    return list<std::string>(session.run(ops::matching_files(root, strings(patterns))));
  };
  EXPECT_THAT(matching({directory.file("*.txt")}), ElementsAre(a, b));
  EXPECT_THAT(matching({directory.file("?.csv"), directory.file("[^a].txt"), directory.file("none*")}),
              ElementsAre(b, c));
  EXPECT_THAT(matching({a, directory.file("none")}), ElementsAre(a));
  EXPECT_EQ(session.run(ops::read_file(root, ops::constant(root, Tensor::scalar(b)))).item<std::string>(), "contents");
}

TEST_F(PipelineOpsTest, RowsAreShuffledAnewInEachRun) {
  const Output shuffled = ops::random_shuffle(root, strings({"a", "b", "c", "d", "e", "f", "g", "h"}));
  const auto first = list<std::string>(session.run(shuffled)), second = list<std::string>(session.run(shuffled));
  EXPECT_THAT(first, UnorderedElementsAre("a", "b", "c", "d", "e", "f", "g", "h"));
  EXPECT_NE(first, second);
}

TEST_F(PipelineOpsTest, SeedsDecideTheOrders) {  // IN-4
  const auto orders = [](uint64_t graph_seed, int64_t seed, const std::string& name) {
    Graph graph;
    graph.set_seed(graph_seed);
    const Scope root(graph);
    const Output numbers = ops::constant(root, Tensor::of<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    const Output shuffled = ops::random_shuffle(root, numbers, seed, name);
    testing::ScriptedSession session(graph);
    auto both = list<int64_t>(session.run(shuffled));
    for (int64_t i : list<int64_t>(session.run(shuffled))) both.push_back(i);
    return both;
  };
  EXPECT_EQ(orders(1, 0, "a"), orders(1, 0, "a"));
  EXPECT_EQ(orders(0, 2, "a"), orders(0, 2, "a"));
  EXPECT_NE(orders(1, 0, "a"), orders(2, 0, "a"));
  EXPECT_NE(orders(1, 0, "a"), orders(1, 1, "a"));
  EXPECT_NE(orders(1, 0, "a"), orders(1, 0, "b"));
  EXPECT_NE(orders(0, 0, "a"), orders(0, 0, "a"));
}

TEST_F(PipelineOpsTest, TensorsArePackedAlongAnyAxis) {
  const Output a = ops::constant(root, Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const Output b = ops::constant(root, Tensor::of<float>({2, 2}, {5, 6, 7, 8}));
  EXPECT_THAT(list<float>(session.run(ops::pack(root, {a, b}))), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(list<float>(session.run(ops::pack(root, {a, b}, 1))), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_THAT(list<float>(session.run(ops::pack(root, {a, b}, -1))), ElementsAre(1, 5, 2, 6, 3, 7, 4, 8));
  const Output three = ops::pack(root, {a, b, a}, -1);
  EXPECT_EQ(three.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(session.run(three).shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(refusal_of([&] { ops::pack(root, {a, b}, 3); }), HasSubstr("there is no axis 3"));
}

TEST_F(PipelineOpsTest, RowsAreGatheredMaskedAndPacked) {
  const Output rows = ops::reshape_any(root, strings({"a", "b", "c", "d", "e", "f"}), {3, -1});
  EXPECT_EQ(rows.shape(), (Shape{3, 2}));
  const Output indices = ops::constant(root, Tensor::of<int32_t>({2, 0}));
  const Output gathered = ops::gather_rows(root, rows, indices);
  EXPECT_EQ(gathered.shape(), (Shape{2, 2}));
  EXPECT_THAT(list<std::string>(session.run(gathered)), ElementsAre("e", "f", "a", "b"));
  const Output one = ops::gather_rows(root, rows, ops::constant(root, int64_t{1}));
  EXPECT_EQ(session.run(one).shape(), Shape{2});
  const Output masked = ops::mask_rows(root, rows, ops::constant(root, Tensor::of<bool>({true, false, true})));
  EXPECT_EQ(masked.shape(), (Shape{-1, 2}));
  EXPECT_THAT(list<std::string>(session.run(masked)), ElementsAre("a", "b", "e", "f"));
  EXPECT_THAT(list<std::string>(session.run(ops::pack(root, {one, one}))), ElementsAre("c", "d", "c", "d"));
  EXPECT_THAT(list<std::string>(session.run(ops::pack(root, {one, one}, 1))), ElementsAre("c", "c", "d", "d"));
  EXPECT_EQ(session.run(ops::expand_dims(root, rows, -1)).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(ops::expand_dims(root, rows, 0).shape(), (Shape{1, 3, 2}));
  const Output outside = ops::gather_rows(root, rows, ops::constant(root, Tensor::of<int64_t>({3})), "outside");
  EXPECT_THAT(refusal_of([&] { session.run(outside); }), HasSubstr("outside: indices[0] = 3 is not in [0, 3)"));
}

TEST_F(PipelineOpsTest, CallsThatCannotWorkAreRefusedWhenTheGraphIsBuilt) {
  const Output text = strings({"a"}), reader = ops::text_line_reader(root);
  const FIFOQueue numbers(root, 10, {kInt64}, {.shapes = {{}}});
  EXPECT_THAT(refusal_of([&] { ops::read(root, reader, numbers); }),
              HasSubstr("must be one string, the name of a file"));
  EXPECT_THAT(refusal_of([&] { ops::read(root, text, files); }), HasSubstr("input 0 must be a reader"));
  EXPECT_THAT(refusal_of([&] { ops::tf_record_reader(root, {.compression_type = "LZ4"}); }), HasSubstr("ZLIB or GZIP"));
  EXPECT_THAT(refusal_of([&] { ops::fixed_length_record_reader(root, 0); }),
              HasSubstr("record_bytes must be positive"));
  EXPECT_THAT(refusal_of([&] { ops::text_line_reader(root, {.skip_header_lines = -1}); }),
              HasSubstr("not be negative"));
  EXPECT_THAT(refusal_of([&] { ops::decode_csv(root, text, {}); }), HasSubstr("at least one column"));
  EXPECT_THAT(refusal_of([&] { ops::decode_csv(root, text, {Tensor::scalar("")}, {.select_cols = {1, 2}}); }),
              HasSubstr("2 select_cols for 1 record_defaults"));
  EXPECT_THAT(refusal_of([&] { ops::decode_csv(root, text, {Tensor::of<bool>({true})}); }),
              HasSubstr("cannot be bool"));
  EXPECT_THAT(refusal_of([&] { ops::decode_raw(root, text, kString); }), HasSubstr("must have a fixed size"));
  EXPECT_THAT(refusal_of([&] { ops::parse_example(root, text, {{"x", VarLenFeature{kInt32}}}); }),
              HasSubstr("a feature cannot be int32"));
  EXPECT_THAT(refusal_of([&] { ops::reshape_any(root, text, {2, 3}); }), HasSubstr("cannot reshape [1] to [2,3]"));
  EXPECT_THAT(refusal_of([&] { ops::mask_rows(root, text, ops::constant(root, Tensor::of<bool>({true, false}))); }),
              HasSubstr("the mask has shape [2], but there are 1 rows"));
  EXPECT_THAT(refusal_of([&] { ops::pack(root, {text, strings({"a", "b"})}); }), HasSubstr("[1] and [2] differ"));
}

}  // namespace
}  // namespace longhaul
