// longhaul completion, man: made from the definitions of all commands, so that they say what is there.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutCompletion[] =
    "  source <(longhaul completion bash)        in ~/.bashrc\n"
    "  source <(longhaul completion zsh)         in ~/.zshrc, after compinit\n"
    "  longhaul completion fish | source         in ~/.config/fish/config.fish\n"
    "\n"
    "An installation puts those of bash and fish where the shells find them.\n"
    "Exit status: 0 done; 2 wrong usage.";

constexpr char kAboutMan[] =
    "  longhaul man | man -l -\n"
    "\n"
    "An installation has it: man longhaul.\n"
    "Exit status: 0 done; 2 wrong usage.";

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : program.get_subcommands({})) commands.push_back(command);
  std::sort(commands.begin(), commands.end(),
            [](const CLI::App* a, const CLI::App* b) { return a->get_name() < b->get_name(); });
  return commands;
}

// "--json", "-h" of an option that is no positional.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  return flags;
}

std::string all_flags(const CLI::App& command) {
  std::string all;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& flag : flags_of(*option)) all += (all.empty() ? "" : " ") + flag;
  }
  return all;
}

std::string bash_completion(const CLI::App& program) {
  std::string cases, names;
  for (const CLI::App* command : commands_of(program)) {
    cases += fmt::format("    {}) words='{}' ;;\n", command->get_name(), all_flags(*command));
    names += (names.empty() ? "" : " ") + command->get_name();
  }
  return fmt::format(
      "# Completion of longhaul for bash: source <(longhaul completion bash)\n"
      "_longhaul() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} words= word\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "{0}"
      "  esac\n"
      "  [[ $current == -* ]] || words=\n"
      "  for word in \"${{COMP_WORDS[@]:0:COMP_CWORD}}\"; do [[ $word != -- ]] || words=; done\n"
      "  ((COMP_CWORD > 1)) || words='{1} {2}'\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _longhaul longhaul\n",
      cases, names, all_flags(program));
}

std::string quoted_for_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_completion(const CLI::App& program) {
  std::string text = "# Completion of longhaul for fish: longhaul completion fish | source\n";
  for (const CLI::App* command : commands_of(program)) {
    text += fmt::format("complete -c longhaul -n __fish_use_subcommand -f -a {} -d {}\n", command->get_name(),
                        quoted_for_fish(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        text += fmt::format("complete -c longhaul -n '__fish_seen_subcommand_from {}' -l {} -d {}\n",
                            command->get_name(), name, quoted_for_fish(option->get_description()));
      }
    }
  }
  return text;
}

std::string completion(const CLI::App& program, const std::string& shell) {
  if (shell == "fish") return fish_completion(program);
  const std::string bash = bash_completion(program);
  return shell == "bash" ? bash : "autoload -U +X bashcompinit && bashcompinit\n" + bash;
}

// Text for roff, in which a backslash, a dash and a dot at the beginning of a line mean something.
std::string roff(const std::string& text) {
  std::string escaped;
  bool is_at_begin = true;
  for (const char c : text) {
    if (is_at_begin && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    is_at_begin = c == '\n';
  }
  return escaped;
}

// "--keep=NUMBER", "DIR".
std::string term_of(const CLI::Option& option) {
  std::vector<std::string> flags = flags_of(option);
  if (flags.empty()) return option.get_name(true);
  const bool has_value = option.get_items_expected_max() > 0 && option.get_type_size_max() > 0;
  if (has_value) flags.front() += "=VALUE";
  return fmt::format("{}", fmt::join(flags, ", "));
}

std::string manual_of(const CLI::App& command) {
  std::string text = fmt::format(".SS longhaul {}\n{}.\n", roff(command.get_name()), roff(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    const std::string preset = option->get_default_str();
    text += fmt::format(".TP\n.B {}\n{}.{}\n", roff(term_of(*option)), roff(option->get_description()),
                        preset.empty() ? "" : fmt::format(" Default: {}.", roff(preset)));
  }
  if (!command.get_footer().empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.get_footer()));
  return text;
}

std::string manual(const CLI::App& program) {
  std::string text = fmt::format(
      ".TH LONGHAUL 1 \"\" \"longhaul {}\" \"User Commands\"\n"
      ".SH NAME\nlonghaul \\- looks at trainings, and does what is done to them from outside\n"
      ".SH SYNOPSIS\n.B longhaul\nCOMMAND [OPTIONS] [ARGUMENTS]\n"
      ".SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      LONGHAUL_VERSION, roff(program.get_description()));
  for (const CLI::App* command : commands_of(program)) text += manual_of(*command);
  return text +
         ".SH ENVIRONMENT\n"
         ".TP\n.B NO_COLOR\nIf it is set, no colours are used. Without a terminal none are used anyway.\n"
         ".TP\n.B COLUMNS\nThe width of the terminal, in place of its own.\n"
         ".SH EXIT STATUS\n"
         "0: fine. 1: an error, or something is wrong. 2: wrong usage. longhaul run ends as its command does.\n";
}

}  // namespace

void add_completion(CLI::App& program) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("completion", "Prints completion for a shell");
  command->footer(kAboutCompletion);
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&program, shell] { print(completion(program, *shell)); });
}

void add_man(CLI::App& program) {
  CLI::App* command = program.add_subcommand("man", "Prints the manual as a man page");
  command->footer(kAboutMan);
  command->callback([&program] { print(manual(program)); });
}

}  // namespace longhaul::tools
