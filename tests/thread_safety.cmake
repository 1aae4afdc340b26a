# Clang's thread-safety analysis (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html) of every source of the layers
# without libtorch, whose headers clang 14 does not compile in C++20. The test runs a ninja file of its own, so that a
# file is analysed again only after it or what it includes has changed. Only the system's headers are precompiled, so
# that a header of ours that its .cc includes first is compiled alone here (headers.cmake).
set(directory ${CMAKE_CURRENT_BINARY_DIR}/thread_safety)
set(common ${CMAKE_CURRENT_SOURCE_DIR}/precompiled_system.h)
set(clang "clang++ -std=c++20 -Wthread-safety -Werror=thread-safety @flags -MMD -MF $out.d -MT $out")
set(text "rule precompile
  command = ${clang} -x c++-header $in -o $out
  depfile = $out.d
  deps = gcc
rule analyse
  command = ${clang} -fsyntax-only -include-pch common.pch $own $in && touch $out
  depfile = $out.d
  deps = gcc
  description = $in
build common.pch: precompile ${common} | flags
")

get_property(layers GLOBAL PROPERTY LONGHAUL_LAYERS)
list(FILTER layers EXCLUDE REGEX "^(runtime|binding|cluster|trainer)$")
set(includes "")
set(definitions "")
foreach(layer ${layers})
  string(REPLACE "/" "_" target longhaul_${layer})
  list(APPEND includes $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  list(APPEND definitions $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(FILTER sources EXCLUDE REGEX "\\.pb\\.cc$")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/longhaul/${layer} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(REPLACE "/" "_" name ${name})
    string(APPEND text "build ${name}: analyse ${source} | flags common.pch\n")
    get_source_file_property(own ${source} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    if(own)
      string(APPEND text "  own = '-D${own}'\n")
    endif()
  endforeach()
endforeach()
set(includes $<FILTER:$<REMOVE_DUPLICATES:${includes}>,EXCLUDE,^/usr/include$>)
set(definitions $<FILTER:$<REMOVE_DUPLICATES:${definitions}>,EXCLUDE,^$>)
file(GENERATE OUTPUT ${directory}/flags CONTENT "-I$<JOIN:${includes},\n-I>\n-D$<JOIN:${definitions},\n-D>\n")
file(GENERATE OUTPUT ${directory}/build.ninja CONTENT "${text}")

add_test(NAME thread_safety COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/with_tool.sh clang++
         ninja --quiet -j 2 -k 0 -C ${directory})
add_test(NAME thread_safety_rejects_an_unguarded_access
  COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/with_tool.sh clang++ clang++ -std=c++20 -fsyntax-only -Wthread-safety
          -Werror=thread-safety -I${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/thread_safety_violation.cc)
set_tests_properties(thread_safety_rejects_an_unguarded_access PROPERTIES
  PASS_REGULAR_EXPRESSION
    "error: writing variable 'count_' requires holding mutex 'mutex_' exclusively.*1 error generated")
set_tests_properties(thread_safety PROPERTIES PROCESSORS 2 TIMEOUT 600)
set_tests_properties(thread_safety thread_safety_rejects_an_unguarded_access PROPERTIES SKIP_RETURN_CODE 77)
