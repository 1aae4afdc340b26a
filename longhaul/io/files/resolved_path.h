#pragma once

#include <string>

namespace longhaul {

// The file or directory that an absolute path leads to: without dots, doubled slashes and symbolic links, also where
// the last part is a link, and where a link leads to nothing yet, as realpath(3) cannot. Parts that do not exist stay
// as they are. FailedPreconditionError: more than 40 links, as in a circle. Throws the system's error if it may not
// look.
std::string resolved_path(const std::string& path);

// The same for the directory that the path names its last part in; that part itself stays, link or not: what rename(2)
// and unlink(2) work on. InvalidArgumentError: the path has no last part ("/"), or it is "." or "..".
std::string resolved_entry(const std::string& path);

}  // namespace longhaul
