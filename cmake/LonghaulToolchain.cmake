# The language, the warnings, the sanitizers and ccache: what every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_UNITY_BUILD OFF)  # whatever a project has that we are in: longhaul_group() says what may be compiled together
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header carries time stamps that ccache has to be told to overlook.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
endif()

# A full build links more than fifty programs, and gold takes a fifth of the other linker's time for each.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold LONGHAUL_HAS_GOLD)
if(LONGHAUL_DEVELOPER AND LONGHAUL_HAS_GOLD AND NOT LONGHAUL_SANITIZE)
  add_link_options(-fuse-ld=gold)
endif()

# Attached to each target of ours, not to what it links or to its users. A compiler that is newer than ours may warn of
# more, which ends the build of a developer alone.
add_library(longhaul_flags INTERFACE)
target_compile_options(longhaul_flags INTERFACE -Wall -Wextra $<$<BOOL:${LONGHAUL_DEVELOPER}>:-Werror>
                       -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(longhaul_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict  # false alarms in libstdc++ 12
                         -Wno-dangling-reference)  # false alarms of GCC 13 and 14, at calls that take a name's text
endif()

if(LONGHAUL_SANITIZE)
  add_compile_options(-fsanitize=${LONGHAUL_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${LONGHAUL_SANITIZE})
  add_compile_definitions(LONGHAUL_SANITIZED)
  if(LONGHAUL_SANITIZE STREQUAL "thread")
    # Debian's libprotobuf is built without it; with it the headers give maps two more members.
    add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()
if(LONGHAUL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()
