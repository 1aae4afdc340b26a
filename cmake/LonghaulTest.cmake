# Programs of tests, and the entries of ctest that run them.
#
# What some tests need and a machine may lack, and how such tests are named, as gtest's filters have it. Each of them
# says so by LONGHAUL_NEEDS (longhaul/testing/needs_fixture.h), which fails in an entry of other tests.
set(LONGHAUL_NEED_genuine_files *Genuine*)              # files that TensorFlow and others wrote: LONGHAUL_FIXTURES
set(LONGHAUL_NEED_fashion_mnist *FashionMnist*)         # Debian's dataset-fashion-mnist
set(LONGHAUL_NEED_system_calls *Uring*:RefusedCalls.*)  # io_uring, and filters of system calls
set(LONGHAUL_NEED_namespaces *OfAContainer*)            # namespaces of users and processes, as containers have
set(LONGHAUL_NEED_openssl *OfOpenssl*:*OverTls*)        # the command openssl
set(LONGHAUL_NEED_groff *ByGroff*)                      # the command groff
set(LONGHAUL_NEED_descriptors *ManyDescriptors*)        # a hard limit of 2048 open files
set(LONGHAUL_NEED_disk *FromTheDisk*)                   # temporary files that are not in memory
set(LONGHAUL_NEED_long_tests *Gibibyte*:*EveryKind*)    # 4 GiB of memory, and time: LONGHAUL_LONG_TESTS
set(LONGHAUL_NEED_plain_memory *Memory*:Hostile*)       # memory that no sanitizer takes; a build without one has it
set(LONGHAUL_NEED_forked_children *ForkedChild*)        # with threads and signals; all builds but tsan have them

# longhaul_test_program(NAME SOURCES ... [DEPENDS layer ...] [LINK library ...] [ON_TORCH]): a program of tests that
# ctest does not know yet, with the precompiled headers of all tests, or of those that include libtorch's; compiled in
# groups (longhaul_group).
function(longhaul_test_program name)
  cmake_parse_arguments(ARG "ON_TORCH" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} $<TARGET_OBJECTS:skipped_tests>)
  list(TRANSFORM ARG_DEPENDS PREPEND longhaul::)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LINK} fmt::fmt longhaul_flags GTest::gmock
                        GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${LONGHAUL_TEST_OPTIONS})
  longhaul_group(${name})
  if(ARG_ON_TORCH)
    target_precompile_headers(${name} REUSE_FROM precompiled_for_torch_tests)
  else()
    target_precompile_headers(${name} REUSE_FROM precompiled_for_tests)
  endif()
endfunction()

# longhaul_fixtures(NAME SOURCES ... [DEPENDS layer ...] [LINK library ...]): the bodies of fixtures that several
# programs of tests use, compiled once; such a program names it in its DEPENDS. The fixtures of one program are sources
# of that program.
function(longhaul_fixtures name)
  if(NOT LONGHAUL_DEVELOPER)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND longhaul::)
  add_library(longhaul_${name} STATIC ${ARG_SOURCES})
  add_library(longhaul::${name} ALIAS longhaul_${name})
  target_link_libraries(longhaul_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LINK}
                        PRIVATE fmt::fmt longhaul_flags GTest::gmock)
  target_compile_options(longhaul_${name} PRIVATE ${LONGHAUL_TEST_OPTIONS})
endfunction()

# longhaul_test_entry(ENTRY PROGRAM NEED FILTER): ctest runs these tests of a program; NEED may be empty.
function(longhaul_test_entry entry program need filter)
  add_test(NAME ${entry} COMMAND ${program} --gtest_brief=1 --gtest_filter=${filter})
  set_tests_properties(${entry} PROPERTIES TIMEOUT 600 ENVIRONMENT "LONGHAUL_TEST_NEED=${need}")
  if(need)
    set_tests_properties(${entry} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  get_target_property(sources ${program} SOURCES)
  if(process.cc IN_LIST sources)
    set_tests_properties(${entry} PROPERTIES LABELS processes)
  endif()
endfunction()

# longhaul_test_part(ENTRY PART PARTS): of the tests of this entry ctest runs those of one part; the first is 1.
function(longhaul_test_part entry part parts)
  math(EXPR index "${part} - 1")
  set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${parts} GTEST_SHARD_INDEX=${index})
endfunction()

# longhaul_test(NAME ... [NEEDS need ...] [ALL_NEED need] [PARTS n]): a program as above, and ctest runs it. Those of
# its tests that need something are an entry NAME_NEED, so that ctest shows them as skipped where it is lacking, and the
# others not; where all of them need it, whatever their names and it are, NAME itself is shown so. A program that starts
# others (tests/process.cc) has the label "processes". With PARTS, which is for a program that mostly waits, NAME has
# only a part of the other tests, and NAME_2, NAME_3, ... the rest, so that ctest can run them side by side.
function(longhaul_test name)
  cmake_parse_arguments(ARG "ON_TORCH" "ALL_NEED;PARTS" "SOURCES;DEPENDS;LINK;NEEDS" ${ARGN})
  set(torch "")
  if(ARG_ON_TORCH)
    set(torch ON_TORCH)
  endif()
  longhaul_test_program(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK} ${torch})
  set(needs ${ARG_NEEDS})
  if(NOT LONGHAUL_SANITIZE)
    list(REMOVE_ITEM needs plain_memory)
  endif()
  if(NOT LONGHAUL_SANITIZE MATCHES thread)
    list(REMOVE_ITEM needs forked_children)
  endif()
  set(filters "")
  foreach(need ${needs})
    if(NOT LONGHAUL_NEED_${need})
      message(FATAL_ERROR "${name}: unknown NEEDS ${need}; cmake/LonghaulTest.cmake lists the known ones")
    endif()
    longhaul_test_entry(${name}_${need} ${name} ${need} ${LONGHAUL_NEED_${need}})
    list(APPEND filters ${LONGHAUL_NEED_${need}})
  endforeach()
  list(JOIN filters : others)
  if(others)
    string(PREPEND others -)
  else()
    set(others *)
  endif()
  longhaul_test_entry(${name} ${name} "${ARG_ALL_NEED}" ${others})
  if(ARG_PARTS)
    longhaul_test_part(${name} 1 ${ARG_PARTS})
    foreach(part RANGE 2 ${ARG_PARTS})
      longhaul_test_entry(${name}_${part} ${name} "${ARG_ALL_NEED}" ${others})
      longhaul_test_part(${name}_${part} ${part} ${ARG_PARTS})
    endforeach()
  endif()
endfunction()

# longhaul_test_on_fake_device(NAME [EXCEPT FILTER]): ctest runs the tests of NAME once more, with test_device() a fake
# device (longhaul/testing/fake_device/test_device_fixture.h).
function(longhaul_test_on_fake_device name)
  cmake_parse_arguments(ARG "" "EXCEPT" "" ${ARGN})
  if(NOT LONGHAUL_DEVELOPER)
    return()
  endif()
  set(entry ${name}_on_fake_device)
  longhaul_test_entry(${entry} ${name} "" "-${ARG_EXCEPT}")
  set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT LONGHAUL_TEST_DEVICE=fake)
endfunction()
