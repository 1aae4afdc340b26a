// longhaul board: a page about trainings.

#include <CLI/CLI.hpp>
#include <memory>

#include "longhaul/console/board/board_server.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutBoard[] =
    "  longhaul board runs                      all trainings below runs: http://127.0.0.1:7007/\n"
    "  longhaul board runs/a runs/b             these two, compared\n"
    "  longhaul board --port=0 runs             any free port; the first line printed has it\n"
    "  ssh -L 7007:127.0.0.1:7007 HOST longhaul board /data/runs\n"
    "  longhaul board --address=0.0.0.0 --token-file=token runs    for others, who need the token\n"
    "\n"
    "Curves over runs, images, histograms, texts, time lines, checkpoints and options, live and from the files "
    "alone:\n"
    "nothing is written, and no training notices. Also for event files of TensorFlow and PyTorch. Directories up to\n"
    "three levels below DIR are searched, again and again; one that is not there yet is waited for. A token file:\n"
    "openssl rand -hex 32 > token && chmod 600 token. Ctrl-C, SIGTERM or SIGHUP ends it.\n"
    "\n"
    "Exit status: 0 ended by a signal; 1 an error, such as a port that is taken; 2 wrong usage.";

}  // namespace

void add_board(CLI::App& program) {
  const auto options = std::make_shared<console::BoardOptions>();
  CLI::App* command = program.add_subcommand("board", "Serves a page with curves and more of any number of trainings");
  command->footer(kAboutBoard);
  command->add_option("DIR", options->directories, "Directories of trainings, or above them")->required();
  command->add_option("--address", options->address, "Where it listens, in digits; beyond loopback it needs a token")
      ->capture_default_str();
  command->add_option("--port", options->port, "0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  command->add_option("--token-file", options->token_file, "What whoever reads beyond loopback must give");
  command
      ->add_option("--allow-host", options->allowed_hosts,
                   "A name by which browsers may ask, besides digits and localhost; may be there several times")
      ->allow_extra_args(false);
  command->callback([options] {
    show_warnings();
    console::serve_board(FileSystem::real(), *options, [](const std::string& line) { print(line + "\n"); });
  });
}

}  // namespace longhaul::tools
