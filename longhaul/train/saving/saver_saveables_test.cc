#include "longhaul/ops/saveable.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A table of the program's own, with keys and values, that operations read and replace.
struct SavedTable {
  std::vector<std::string> keys;
  std::vector<float> values;
  int reads = 0;
};

Saveable saveable_of(const Scope& scope, SavedTable* table, const std::string& name) {
  const Operation read = ops::host_function(
      scope, {}, {kString, kFloat},
      [table](const std::vector<Tensor>&) -> std::vector<Tensor> {
        ++table->reads;
        return {Tensor::of(table->keys), Tensor::of(table->values)};
      },
      name);
  const auto restore = [table](const Scope& at, const std::vector<Output>& restored) {
    const auto fill = [table](const std::vector<Tensor>& values) -> std::vector<Tensor> {
      const auto keys = values[0].flat<std::string>();
      const auto numbers = values[1].flat<float>();
      table->keys.assign(keys.begin(), keys.end());
      table->values.assign(numbers.begin(), numbers.end());
      return {};
    };
    return ops::host_function(at, restored, {}, fill, "import");
  };
  return {.name = name,
          .op = read,
          .parts = {{name + "-keys", read.output(0)}, {name + "-values", read.output(1)}},
          .restore = restore};
}

class SaveablesTest : public SaverFixture {
 protected:
  SavedTable table{{"one", "two"}, {1, 2}};
};

TEST_F(SaveablesTest, ATableIsSavedAndRestoredWithTheVariables) {  // SA-1, SA-40
  ops::add_saveable(graph, saveable_of(root, &table, "words"));
  Saver saver(options);
  saver.save(*session, path);
  EXPECT_THAT(BundleReader(files, path).keys(), ElementsAre("a", "b", "global_step", "words-keys", "words-values"));
  table = {{"changed"}, {7}};
  set(a, 9);
  saver.restore(*session, path);
  EXPECT_THAT(table.keys, ElementsAre("one", "two"));
  EXPECT_THAT(table.values, ElementsAre(1, 2));
  EXPECT_EQ(get(a), 1);
}

TEST_F(SaveablesTest, ItIsReadOnceInASaveAndNotInARestore) {  // SA-49
  options.var_list = {{saveable_of(root, &table, "words")}};
  Saver saver(options);
  EXPECT_EQ(table.reads, 0);
  saver.save(*session, path);
  EXPECT_EQ(table.reads, 1);
  saver.restore(*session, path);
  EXPECT_EQ(table.reads, 1);
}

TEST_F(SaveablesTest, OneStoredValueMayGoIntoTwoVariables) {  // SA-49
  const Saveable both{.name = "both",
                      .parts = {{"both", a}},
                      .restore = [this](const Scope& scope, const std::vector<Output>& restored) {
                        return ops::group(
                            scope, {ops::assign(scope, a, restored[0]).op(), ops::assign(scope, b, restored[0]).op()});
                      }};
  options.var_list = {{both}};
  Saver saver(options);
  saver.save(*session, path);
  set(a, 5);
  saver.restore(*session, path);
  EXPECT_EQ(get(a), 1);
  EXPECT_EQ(get(b), 1);
}

TEST_F(SaveablesTest, NamesMustBeUnique) {  // SA-2, SA-3
  const Saveable words = saveable_of(root, &table, "words");
  Saveable again = words;
  again.name = "again";
  options.var_list = {{words, words}};
  EXPECT_THAT(error_of([&] { Saver{options}; }), HasSubstr("same name: words"));
  options.var_list = {{words, again}};
  EXPECT_THAT(error_of([&] { Saver{options}; }), HasSubstr("The same saveable will be restored with two names: words"));
  options.var_list = {{a, words}};
  EXPECT_NO_THROW(Saver{options});
}

TEST_F(SaveablesTest, AGraphWithoutVariablesCanHaveSomethingToSave) {  // SA-5
  Graph bare;
  EXPECT_THAT(error_of([&] { Saver({.graph = &bare}); }), HasSubstr("No variables to save"));
  ops::add_saveable(bare, saveable_of(Scope(bare), &table, "words"));
  Saver saver({.graph = &bare});
  const auto alone = make_scripted_session(bare);
  saver.save(*alone, path);
  EXPECT_EQ(BundleReader(files, path).keys().size(), 2u);
}

TEST_F(SaveablesTest, TheMetaGraphLeavesThemOutAndHasTheSaversNodes) {
  ops::add_saveable(graph, saveable_of(root, &table, "words"));
  const proto::MetaGraphDef meta = Saver(options).export_meta_graph();
  EXPECT_FALSE(meta.collection_def().contains("saveable_objects"));
  EXPECT_EQ(meta.saver_def().restore_op_name(), "save/restore_all");
}

}  // namespace
}  // namespace longhaul
