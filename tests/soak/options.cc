#include "tests/soak/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "tests/soak/damage.h"
#include "tests/soak/run_cases.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;

// With what each of them is.
std::vector<std::string> names_of_cases(std::string& description) {
  std::vector<std::string> names;
  const auto add = [&](const auto& cases) {
    for (const auto& one : cases) {
      names.emplace_back(one.name);
      description += fmt::format("\n  {:<15} {}", one.name, one.what);
    }
  };
  add(run_cases());
  add(damage_cases());
  return names;
}

}  // namespace

bool is_chosen(const Options& options, const std::string& name) {
  const auto is_in = [&name](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return (options.only.empty() || is_in(options.only)) && !is_in(options.without);
}

Options parse(int argc, char** argv) {
  Options options;
  std::string description = "Disturbs training runs in every way and checks that nothing is lost. The cases:";
  const std::vector<std::string> names = names_of_cases(description);
  CLI::App app{description};
  app.add_option("program", options.program, "exact_resume_program")->required();
  app.add_option("--seconds", options.seconds, "Duration");
  app.add_option("--seed", options.seed, "Seed of all random choices");
  app.add_option("--steps", options.steps, "Steps of each training run");
  app.add_option("--width", options.width, "Width of the model's layer; a checkpoint has 360 bytes per unit");
  app.add_option("--directory", options.directory, "A new directory, which is kept if something is wrong");
  const CLI::Validator is_case = CLI::IsMember(names).description("");
  app.add_option("--only", options.only, "Only these cases, separated by commas")->delimiter(',')->check(is_case);
  app.add_option("--without", options.without, "Cases to leave out, separated by commas")
      ->delimiter(',')
      ->check(is_case);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.directory.empty()) {
    options.directory = fs::temp_directory_path() / fmt::format("longhaul-soak-{}", ::getpid());
  }
  options.directory = fs::absolute(options.directory);
  return options;
}

}  // namespace longhaul::soak
