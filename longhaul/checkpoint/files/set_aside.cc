#include "longhaul/checkpoint/files/set_aside.h"

#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

constexpr std::string_view kAside = ".aside";

// Gives the file a second name in place of whatever has it. Nothing is done for a file that does not exist.
void link_over(FileSystem& files, const std::string& from, const std::string& to) {
  if (!files.exists(from)) return;
  const std::string temporary = temporary_path(to);
  files.link(from, temporary);
  try {
    files.rename(temporary, to);
  } catch (...) {
    remove_if_exists(files, temporary);
    throw;
  }
  remove_if_exists(files, temporary);  // it stays where both names already were those of one file
}

void link_set(FileSystem& files, const std::string& from, const std::string& to) {
  for (const std::string& path : data_files_of(files, from)) link_over(files, path, to + path.substr(from.size()));
  link_over(files, meta_graph_filename(from), meta_graph_filename(to));
  files.sync_directory(directory_name(to));
  link_over(files, index_path(from), index_path(to));
  files.sync_directory(directory_name(to));
}

}  // namespace

std::string aside_prefix(const std::string& prefix) {
  return prefix + std::string(kAside);
}

std::string without_aside(const std::string& prefix) {
  return prefix.ends_with(kAside) ? prefix.substr(0, prefix.size() - kAside.size()) : prefix;
}

void set_aside(FileSystem& files, const std::string& prefix) {
  drop_aside(files, prefix);  // an older one: a committed <prefix> makes it worthless
  link_set(files, prefix, aside_prefix(prefix));
  remove_if_exists(files, index_path(prefix));
  files.sync_directory(directory_name(prefix));
}

void put_back(FileSystem& files, const std::string& prefix) {
  if (!files.exists(meta_graph_filename(aside_prefix(prefix)))) remove_if_exists(files, meta_graph_filename(prefix));
  link_set(files, aside_prefix(prefix), prefix);
  drop_aside(files, prefix);
}

void drop_aside(FileSystem& files, const std::string& prefix) {
  const std::string aside = aside_prefix(prefix);
  remove_if_exists(files, index_path(aside));
  for (const std::string& path : data_files_of(files, aside)) remove_if_exists(files, path);
  remove_if_exists(files, meta_graph_filename(aside));
}

}  // namespace longhaul
