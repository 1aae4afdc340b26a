#pragma once

#include <cstddef>

namespace longhaul {

inline constexpr size_t kPage = 4096;
inline constexpr size_t kHugePage = size_t{2} << 20;  // on x86-64, and on ARM with 4 KiB pages

// Memory from the system; `bytes` is a multiple of kPage. From kHugePage on, it is aligned to kHugePage and consists of
// huge pages as far as the system has them. nullptr: out of memory.
char* map_pages(size_t bytes);
void unmap_pages(char* data, size_t bytes);

// The pages stay mapped, but the system may give them to others; used again, they are new, and of size kPage.
void empty_pages(char* data, size_t bytes);

}  // namespace longhaul
