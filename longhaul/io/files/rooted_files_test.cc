#include "longhaul/io/files/rooted_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "longhaul/io/files/resolved_path.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using PathOperation = std::function<void(FileSystem&, const std::string&)>;

// Each operation of the interface, on that path.
const std::map<std::string, PathOperation>& path_operations() {
  using IfExists = FileSystem::IfExists;
  static const auto* operations = new std::map<std::string, PathOperation>{
      {"create", [](FileSystem& files, const std::string& path) { files.create(path)->close(); }},
      {"create (new)", [](FileSystem& files, const std::string& path) { files.create(path, IfExists::kFail); }},
      {"create_large", [](FileSystem& files, const std::string& path) { files.create_large(path, {})->close(); }},
      {"create_large (new)",
       [](FileSystem& files, const std::string& path) { files.create_large(path, {.if_exists = IfExists::kFail}); }},
      {"open", [](FileSystem& files, const std::string& path) { files.open(path); }},
      {"exists", [](FileSystem& files, const std::string& path) { files.exists(path); }},
      {"is_directory", [](FileSystem& files, const std::string& path) { files.is_directory(path); }},
      {"modified_at", [](FileSystem& files, const std::string& path) { files.modified_at(path); }},
      {"list", [](FileSystem& files, const std::string& path) { files.list(path); }},
      {"make_directories", [](FileSystem& files, const std::string& path) { files.make_directories(path); }},
      {"rename (from)", [](FileSystem& files, const std::string& path) { files.rename(path, path); }},
      {"link (from)", [](FileSystem& files, const std::string& path) { files.link(path, path); }},
      {"remove", [](FileSystem& files, const std::string& path) { files.remove(path); }},
      {"sync_directory", [](FileSystem& files, const std::string& path) { files.sync_directory(path); }},
      {"free_bytes", [](FileSystem& files, const std::string& path) { files.free_bytes(path); }},
      {"try_lock", [](FileSystem& files, const std::string& path) { files.try_lock(path); }},
  };
  return *operations;
}

// The names of the methods that file.h declares in FileSystem, and what RootedFiles overrides.
std::set<std::string> virtual_methods(const std::string& header, const std::string& class_line, const char* keyword) {
  const std::string text = read_file(FileSystem::real(), std::string(LONGHAUL_IO) + "/" + header);
  const size_t begin = text.find(class_line), end = text.find("\n};", begin);
  EXPECT_NE(begin, text.npos) << header;
  const std::string body = text.substr(begin, end - begin);
  const std::regex method(keyword);
  std::set<std::string> names;
  for (std::sregex_iterator it(body.begin(), body.end(), method), none; it != none; ++it) names.insert((*it)[1]);
  return names;
}

// A root with a file and a directory, beside a secret.
class RootedFilesTest : public ::testing::Test {
 protected:
  RootedFilesTest() {
    std::filesystem::create_directories(root_ + "/directory");
    put(root_ + "/file", "inside");
    put(outside("secret"), "outside");
  }

  std::string outside(const std::string& name) const { return directory_.file(name); }
  std::string inside(const std::string& name) const { return root_ + "/" + name; }
  static void put(const std::string& path, const std::string& text) {
    write_file_atomically(FileSystem::real(), path, text);
  }
  void make_link(const std::string& name, const std::string& target) {
    std::filesystem::create_symlink(target, inside(name));
  }

  // No operation gets at the path, and each says why.
  void expect_refused(const std::string& path) {
    for (const auto& [name, operation] : path_operations()) {
      EXPECT_THAT(error_of<PermissionDeniedError>([&] { operation(files_, path); }),
                  AllOf(HasSubstr("file_roots"), HasSubstr(root_)))
          << name << " " << path;
    }
    EXPECT_EQ(read_file(FileSystem::real(), outside("secret")), "outside");
  }

  testing::TemporaryDirectory directory_;
  const std::string root_ = resolved_path(directory_.file("root"));
  RootedFiles files_{FileSystem::real(), {root_}};
};

TEST_F(RootedFilesTest, GiveWhatIsBelowTheirRoots) {
  EXPECT_EQ(read_file(files_, inside("file")), "inside");
  EXPECT_THAT(files_.list(root_), ElementsAre("directory", "file"));
  files_.make_directories(inside("a/b/c"));
  write_file_atomically(files_, inside("a/b/c/new"), "text");
  files_.rename(inside("a/b/c/new"), inside("moved"));
  files_.link(inside("moved"), inside("linked"));
  EXPECT_EQ(read_file(files_, inside("linked")), "text");
  files_.remove(inside("moved"));
  EXPECT_FALSE(files_.exists(inside("moved")));
  EXPECT_TRUE(files_.is_directory(inside("./a//b/")));
  EXPECT_GT(files_.free_bytes(root_), 0u);
  EXPECT_EQ(files_.try_lock(inside("lock")).outcome, FileLock::Outcome::kHeld);
}

TEST_F(RootedFilesTest, RefuseEveryOperationOutside) {
  expect_refused(outside("secret"));
  expect_refused("/etc/passwd");
  expect_refused("/");
  expect_refused(root_ + "x/file");  // which only begins like the root
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { files_.open("/etc/passwd"); }),
              AllOf(HasSubstr("open /etc/passwd: "), HasSubstr("only " + root_ + " and what is below")));
}

TEST_F(RootedFilesTest, RefusePathsThatAreRelativeOrGoUp) {
  expect_refused("file");
  expect_refused("");
  expect_refused("file://" + inside("file"));
  expect_refused(inside("../secret"));
  expect_refused(inside("directory/.."));
  expect_refused(inside("none/../../secret"));
  expect_refused(inside("file") + std::string(1, '\0') + "/../secret");
}

TEST_F(RootedFilesTest, TakeNewlinesAndDotsWithinANameAsTheyAre) {
  put(inside("a\nb..c"), "odd");
  EXPECT_EQ(read_file(files_, inside("a\nb..c")), "odd");
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { files_.open("/et\nc"); }), HasSubstr("open /et\\x0ac: "));
}

TEST_F(RootedFilesTest, RefuseLinksThatLeadOut) {
  make_link("out", outside("secret"));
  make_link("up", "../secret");
  make_link("away", directory_.path());
  make_link("twice", "away/secret");
  for (const char* name : {"out", "up", "twice"}) {
    for (const auto& [what, operation] : path_operations()) {
      if (what == "remove" || what.find('(') != what.npos) continue;  // these are about the link itself
      EXPECT_THROW(operation(files_, inside(name)), PermissionDeniedError) << what << " " << name;
    }
    EXPECT_THROW(files_.create(inside(name), FileSystem::IfExists::kFail), AlreadyExistsError);
  }
  expect_refused(inside("away/secret"));
  expect_refused(inside("away/new"));
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { files_.open(inside("out")); }),
              HasSubstr("a link leads to " + resolved_path(outside("secret"))));
}

TEST_F(RootedFilesTest, RefuseALinkThatLeadsOutToNothing) {
  make_link("hole", outside("new"));
  EXPECT_THROW(files_.create(inside("hole")), PermissionDeniedError);
  EXPECT_THROW(files_.create_large(inside("hole"), {}), PermissionDeniedError);
  EXPECT_THROW(files_.make_directories(inside("hole/a")), PermissionDeniedError);
  EXPECT_THROW(files_.try_lock(inside("hole")), PermissionDeniedError);
  EXPECT_THROW(files_.exists(inside("hole")), PermissionDeniedError);
  EXPECT_FALSE(std::filesystem::exists(outside("new")));
}

TEST_F(RootedFilesTest, RemoveAndRenameALinkAndNotWhereItLeads) {
  make_link("out", outside("secret"));
  files_.rename(inside("out"), inside("other"));
  files_.remove(inside("other"));
  EXPECT_FALSE(std::filesystem::is_symlink(inside("other")));
  EXPECT_EQ(read_file(FileSystem::real(), outside("secret")), "outside");
}

TEST_F(RootedFilesTest, KeepTheRootsThemselves) {
  EXPECT_THROW(files_.remove(root_), PermissionDeniedError);
  EXPECT_THROW(files_.remove(root_ + "/"), PermissionDeniedError);
  EXPECT_THROW(files_.rename(root_, inside("file")), PermissionDeniedError);
  EXPECT_THROW(files_.rename(inside("file"), outside("taken")), PermissionDeniedError);
  EXPECT_THROW(files_.link(outside("secret"), inside("mine")), PermissionDeniedError);
}

TEST_F(RootedFilesTest, FollowLinksThatStayInside) {
  make_link("within", "directory");
  put(inside("directory/x"), "x");
  EXPECT_EQ(read_file(files_, inside("within/x")), "x");
  EXPECT_TRUE(files_.is_directory(inside("within")));
}

TEST_F(RootedFilesTest, LookAnewBeforeEachOperation) {
  put(inside("directory/secret"), "inside");
  EXPECT_EQ(read_file(files_, inside("directory/secret")), "inside");
  std::filesystem::remove_all(inside("directory"));
  make_link("directory", directory_.path());
  expect_refused(inside("directory/secret"));
}

TEST_F(RootedFilesTest, LeaveACircleOfLinks) {
  make_link("a", "b");
  make_link("b", "a");
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { files_.open(inside("a")); }), HasSubstr("in a circle"));
}

TEST_F(RootedFilesTest, WithoutRootsThereAreNoFiles) {
  RootedFiles none(FileSystem::real(), {});
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { none.open(inside("file")); }),
              AllOf(HasSubstr("no directory is used"), HasSubstr("file_roots")));
}

TEST_F(RootedFilesTest, RootsAreAbsoluteAndMayBeLinks) {
  EXPECT_THAT(refusal_of([] { RootedFiles(FileSystem::real(), {"runs"}); }),
              AllOf(HasSubstr("\"runs\" is relative"), HasSubstr("such as \"/")));
  std::filesystem::create_directory_symlink(root_, outside("current"));
  RootedFiles linked(FileSystem::real(), {outside("current"), outside("not yet")});
  EXPECT_EQ(read_file(linked, outside("current/file")), "inside");
  EXPECT_EQ(read_file(linked, inside("file")), "inside");
  linked.make_directories(outside("not yet/a"));
  EXPECT_TRUE(linked.is_directory(outside("not yet/a")));
  RootedFiles all(FileSystem::real(), {"/"});
  EXPECT_EQ(read_file(all, inside("file")), "inside");
}

// A new operation of the interface cannot be forgotten: neither here nor there.
TEST(RootedFilesInterface, OverridesEveryOperation) {
  const std::set<std::string> methods =
      virtual_methods("file.h", "class FileSystem {", R"(\n  virtual [^~\n]*?([a-z_]+)\()");
  EXPECT_GE(methods.size(), 14u);
  EXPECT_EQ(virtual_methods("rooted_files.h", "class RootedFiles ", R"(([a-z_]+)\([^;]*\) override;)"), methods);
  std::set<std::string> tried;
  for (const auto& [name, operation] : path_operations()) tried.insert(name.substr(0, name.find(' ')));
  EXPECT_EQ(tried, methods);
}

}  // namespace
}  // namespace longhaul
