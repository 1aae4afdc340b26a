#pragma once

namespace longhaul {

// Makes the C library keep memory freed by a step for the next one, up to 64 MiB in each of its arenas, and take blocks
// of up to 32 MiB from there. glibc reaches these thresholds by itself once a program has freed a block of 32 MiB;
// until then it returns much of a step's memory, and the kernel has to map and clear it again in each step.
// (mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.)
//
// For the whole process, once, at the first session. Settings in the environment are left alone
// (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_MMAP_MAX_, and GLIBC_TUNABLES with any
// glibc.malloc.*). Settings that the program made with mallopt() cannot be detected, and are replaced: it should call
// mallopt() after its first session. Has no effect with another C library or allocator.
void keep_freed_memory();

}  // namespace longhaul
