#pragma once

namespace longhaul {

// Lets the C library keep what a step frees for the next step, up to 64 MiB in each of its arenas, and take blocks of
// up to 32 MiB from there. glibc comes to these thresholds by itself once a program has freed a block of 32 MiB; until
// then it gives much of a step's memory back, and the kernel has to map and clear it anew in each step. (mallopt(3),
// M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.)
//
// For the whole process, once, at the first session. What the environment says of them is left alone
// (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_MMAP_MAX_, and GLIBC_TUNABLES with any
// glibc.malloc.*). What the program has set with mallopt() cannot be seen, and is replaced: it calls mallopt() after
// its first session. Nothing happens with another C library, or another allocator.
void keep_freed_memory();

}  // namespace longhaul
