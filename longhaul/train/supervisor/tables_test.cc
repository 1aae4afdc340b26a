#include "longhaul/ops/input/lookup_ops.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Tables as operations of a graph.
class TablesTest : public SupervisorFixture {
 protected:
  std::unique_ptr<testing::ScriptedSession> session() { return make_scripted_session(graph, server); }
  Output words(const Tensor& values) { return ops::constant(root, values); }
  std::vector<int64_t> numbers(Session& session, const Output& output) {
    const Tensor tensor = session.run(output);
    return {tensor.flat<int64_t>().begin(), tensor.flat<int64_t>().end()};
  }
  std::string write_words(const std::string& text) {
    write_file_atomically(FileSystem::real(), directory.file("words.txt"), text);
    return directory.file("words.txt");
  }

  const Output asked = words(Tensor::of<std::string>({"moon", "mars"}));
};

TEST_F(TablesTest, ATableIsFilledFromTensors) {
  const HashTable table = ops::hash_table(
      root,
      KeyValueTensorInitializer{words(Tensor::of<std::string>({"sun", "moon"})), words(Tensor::of<int64_t>({5, 6}))},
      Tensor::scalar<int64_t>(-1));
  const Output found = table.lookup(root, asked), size = table.size(root);
  auto running = session();
  EXPECT_THAT(error_of([&] { running->run(found); }), HasSubstr("lookup: Table not initialized."));
  running->run(ops::tables_initializer(root));
  EXPECT_THAT(numbers(*running, found), ElementsAre(6, -1));
  EXPECT_EQ(running->run(size).item<int64_t>(), 2);
}

TEST_F(TablesTest, ATableIsFilledFromAFile) {
  const std::string path = write_words("sun\nmoon\n");
  const HashTable index = ops::index_table_from_file(root, path);
  const HashTable word = ops::index_to_string_table_from_file(root, path, -1, "?");
  const Output indexes = index.lookup(root, asked), back = word.lookup(root, indexes);
  auto running = session();
  running->run(ops::tables_initializer(root));
  EXPECT_THAT(numbers(*running, indexes), ElementsAre(1, -1));
  EXPECT_TRUE(identical(running->run(back), Tensor::of<std::string>({"moon", "?"})));
}

TEST_F(TablesTest, AFileWithAWordTwiceIsRefused) {
  const HashTable table = ops::index_table_from_file(root, write_words("sun\nmoon\nsun\n"));
  EXPECT_THAT(error_of([&] { session()->run(table.initializer()); }),
              HasSubstr("words.txt:3: HashTable has different value for same key: key sun has value 0"));
}

TEST_F(TablesTest, WhatDoesNotFitIsRefusedInTheGraph) {
  const Tensor minus_one = Tensor::scalar<int64_t>(-1);
  const auto from_file = [&](TextFileInitializer initializer) {
    return error_of([&] { ops::hash_table(root, initializer, minus_one); });
  };
  EXPECT_THAT(from_file({.key_dtype = kInt64}), HasSubstr("whole line requires a table key dtype of string"));
  EXPECT_THAT(from_file({.key_index = -1}), HasSubstr("line number requires a table key dtype of int64"));
  EXPECT_THAT(from_file({.key_index = -3}), HasSubstr("Invalid column index -3"));
  EXPECT_THAT(from_file({.delimiter = ", "}), HasSubstr("delimiter should be only 1 char"));
  EXPECT_THAT(from_file({.vocab_size = 0}), HasSubstr("Invalid vocab_size 0"));
  EXPECT_THAT(from_file({.value_dtype = kString, .value_index = -2}),
              HasSubstr("default value must be a scalar of string"));
  EXPECT_THAT(error_of([&] { ops::mutable_hash_table(root, kFloat, kInt64, minus_one); }),
              HasSubstr("keys must be int64 or string, not float"));
  const MutableHashTable table = ops::mutable_hash_table(root, kString, kInt64, minus_one);
  EXPECT_THAT(error_of([&] { table.insert(root, asked, asked); }), HasSubstr("input 2 must be int64, not string"));
  EXPECT_THAT(error_of([&] { table.insert(root, asked, words(Tensor::of<int64_t>({1}))); }),
              HasSubstr("there must be one value for each key"));
  EXPECT_THAT(error_of([&] { root.add("LookupTableSizeV2", "size", {asked}); }), HasSubstr("must be a table"));
}

TEST_F(TablesTest, AMutableTableChanges) {
  const MutableHashTable table = ops::mutable_hash_table(root, kString, kInt64, Tensor::scalar<int64_t>(-1));
  const Operation insert = table.insert(root, asked, words(Tensor::of<int64_t>({1, 2})));
  const Operation remove = table.remove(root, words(Tensor::of<std::string>({"moon"})));
  const Output found = table.lookup(root, asked);
  auto running = session();
  running->run(insert);
  EXPECT_THAT(numbers(*running, found), ElementsAre(1, 2));
  running->run(remove);
  EXPECT_THAT(numbers(*running, found), ElementsAre(-1, 2));
}

TEST_F(TablesTest, TablesOfOneSharedNameAreOne) {
  const Tensor minus_one = Tensor::scalar<int64_t>(-1);
  const auto make = [&](DType values, Tensor missing) {
    return ops::mutable_hash_table(root, kString, values, std::move(missing), {.shared_name = "common"});
  };
  const MutableHashTable one = make(kInt64, minus_one), two = make(kInt64, minus_one);
  const MutableHashTable other = make(kFloat, Tensor::scalar(0.0f));
  const Operation insert = one.insert(root, asked, words(Tensor::of<int64_t>({1, 2})));
  auto running = session();
  running->run(insert);
  EXPECT_EQ(running->run(two.size(root)).item<int64_t>(), 2);
  EXPECT_THAT(error_of([&] { running->run(other.size(root)); }),
              HasSubstr("the existing table of the same shared_name is from string to int64"));
}

TEST_F(TablesTest, AMutableTableIsSavedAndRestored) {  // SA-40
  const MutableHashTable table = ops::mutable_hash_table(root, kString, kInt64, Tensor::scalar<int64_t>(-1));
  const MutableHashTable empty = ops::mutable_hash_table(root, kInt64, kFloat, Tensor::scalar(0.0f), {.name = "empty"});
  const Operation insert = table.insert(root, asked, words(Tensor::of<int64_t>({1, 2})));
  const Operation more = table.insert(root, words(Tensor::of<std::string>({"sun"})), words(Tensor::of<int64_t>({3})));
  const Output found = table.lookup(root, asked), size = table.size(root), empty_size = empty.size(root);
  Saver saver({.graph = &graph});
  auto before = session();
  before->run(insert);
  const std::string prefix = saver.save(*before, directory.file("model"), 1);
  EXPECT_TRUE(identical(BundleReader(FileSystem::real(), prefix).read("MutableHashTable-keys"),
                        Tensor::of<std::string>({"mars", "moon"})));
  restart();
  auto after = session();
  after->run(more);  // is gone after the restore
  saver.restore(*after, prefix);
  EXPECT_THAT(numbers(*after, found), ElementsAre(1, 2));
  EXPECT_EQ(after->run(size).item<int64_t>(), 2);
  EXPECT_EQ(after->run(empty_size).item<int64_t>(), 0);
}

TEST_F(TablesTest, ATrainingsTableSurvivesARestart) {
  const MutableHashTable table = ops::mutable_hash_table(root, kString, kInt64, Tensor::scalar<int64_t>(-1));
  const Operation insert = table.insert(root, asked, words(Tensor::of<int64_t>({1, 2})));
  const Output found = table.lookup(root, asked);
  add_step();
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    session.run(insert);
    session.run(train);
  });
  restart();
  sv.managed_session([&](Session& session) { EXPECT_THAT(numbers(session, found), ElementsAre(1, 2)); });
}

TEST_F(TablesTest, ATableAloneIsWorthASaver) {  // unlike SV-3
  ops::mutable_hash_table(root, kString, kInt64, Tensor::scalar<int64_t>(-1));
  EXPECT_NE(Supervisor(options).saver(), nullptr);
}

TEST_F(TablesTest, ASupervisorInitialisesTablesInEverySession) {  // SV-31, SV-3
  const Output keys = words(Tensor::of<int64_t>({7}));
  const HashTable table = ops::index_table_from_tensor(root, Tensor::of<int64_t>({6, 7}));
  const Output found = table.lookup(root, keys);
  Supervisor sv(options);
  for (int i = 0; i < 2; ++i) {
    restart();
    sv.managed_session([&](Session& session) { EXPECT_THAT(numbers(session, found), ElementsAre(1)); });
  }
}

}  // namespace
}  // namespace longhaul
