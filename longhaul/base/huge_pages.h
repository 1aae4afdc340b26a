#pragma once

#include <cstddef>

namespace longhaul {

inline constexpr size_t kPage = 4096;
inline constexpr size_t kHugePage = size_t{2} << 20;  // of x86-64, and of ARM with pages of 4 KiB

// Memory of the system's, a multiple of kPage. From kHugePage on it begins where a huge page may begin, and consists of
// such as far as the system has them. nullptr: there is none.
char* map_pages(size_t bytes);
void unmap_pages(char* data, size_t bytes);

// The pages stay mapped, and are the system's to give to others; when they are used again, they are new, and of kPage.
void empty_pages(char* data, size_t bytes);

}  // namespace longhaul
