#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {

// The program `longhaul`, whose files are in a directory of the test.
class LonghaulProgram : public ::testing::Test {
 protected:
  LonghaulProgram() { put("cluster.json", R"({"ps": ["127.0.0.1:2222"], "worker": ["10.0.0.4:2223"]})"); }

  std::string path(const std::string& name) const { return directory_.file(name); }
  void put(const std::string& name, const std::string& text) {
    write_file_atomically(FileSystem::real(), path(name), text);
  }

  // The exit status; what it says is in out_ and err_.
  int longhaul(const std::vector<std::string>& arguments);
  int certificates(const std::string& cluster, const std::vector<std::string>& more = {});
  // What it prints with --json.
  nlohmann::json json_of(std::vector<std::string> arguments, int status);

  testing::TemporaryDirectory directory_;
  std::string out_, err_;
};

// A directory as a training leaves it, which was killed.
class LonghaulTrainings : public LonghaulProgram {
 protected:
  LonghaulTrainings();

  void save(int64_t step, float value);
  void write_events();

  FileSystem& files_ = FileSystem::real();
  const double now_ = Clock::real().wall_time();

 private:
  void write_journal();
  std::string framed(const std::string& record);
};

// The words of an output: without numbers, with their units, bars and the spaces of columns, which depend on the time
// and the machine.
std::string shape_of(std::string text);

}  // namespace longhaul
