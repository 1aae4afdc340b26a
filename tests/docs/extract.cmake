# longhaul_doc_examples(PAGE): makes a program and a test of each example of a page. An example is
#
#   <!-- example: NAME -->        a whole program, in a block of ```cpp
#   <!-- output: NAME -->         what it prints, in a block of ```text; may be left out
#
# The test doc_NAME runs the program in an empty directory (run_example.cmake). The page is read when the project is
# configured, and again whenever it changes.

# Sets in the caller: rest, the page from the block's end; name and body of the first block that `marker` announces; an
# empty name if there is none.
function(longhaul_next_block rest marker language)
  set(name "")
  set(body "")
  string(FIND "${rest}" "<!-- ${marker}: " start)
  if(NOT start EQUAL -1)
    string(SUBSTRING "${rest}" ${start} -1 rest)
    if(NOT rest MATCHES "^<!-- ${marker}: ([a-z0-9_]+) -->\n```${language}\n")
      string(SUBSTRING "${rest}" 0 100 beginning)
      message(FATAL_ERROR "not an ${marker} with a block of ```${language} right below it: ${beginning}")
    endif()
    set(name ${CMAKE_MATCH_1})
    string(LENGTH "${CMAKE_MATCH_0}" length)
    string(SUBSTRING "${rest}" ${length} -1 rest)
    string(FIND "${rest}" "\n```\n" end)
    math(EXPR length "${end} + 1")
    string(SUBSTRING "${rest}" 0 ${length} body)
    string(SUBSTRING "${rest}" ${length} -1 rest)
  endif()
  set(name "${name}" PARENT_SCOPE)
  set(body "${body}" PARENT_SCOPE)
  set(rest "${rest}" PARENT_SCOPE)
endfunction()

function(longhaul_write_if_changed path content)
  set(before "")
  if(EXISTS ${path})
    file(READ ${path} before)
  endif()
  if(NOT content STREQUAL before)
    file(WRITE ${path} "${content}")
  endif()
endfunction()

# longhaul_doc_program(NAME SOURCE): the program doc_NAME, and the test doc_NAME that runs it; what it must print is in
# NAME.out of the build folder, if that is there.
function(longhaul_doc_program name source)
  add_executable(doc_${name} ${source})
  target_link_libraries(doc_${name} PRIVATE longhaul::longhaul longhaul_flags)
  # With the warnings that a user may have, and the library's own sources have not.
  target_compile_options(doc_${name} PRIVATE ${LONGHAUL_TEST_OPTIONS} -Wshadow -Wmissing-field-initializers)
  if(TARGET doc_readme AND NOT name STREQUAL readme)
    target_precompile_headers(doc_${name} REUSE_FROM doc_readme)
  else()
    target_precompile_headers(doc_${name} PRIVATE <fmt/format.h> ${PROJECT_SOURCE_DIR}/longhaul/longhaul.h)
  endif()
  add_test(NAME doc_${name}
           COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:doc_${name}> -DWORK=${CMAKE_CURRENT_BINARY_DIR}/run_${name}
                   -DEXPECTED=${CMAKE_CURRENT_BINARY_DIR}/${name}.out -P ${CMAKE_CURRENT_SOURCE_DIR}/run_example.cmake)
  set_tests_properties(doc_${name} PROPERTIES TIMEOUT 120 LABELS docs)
endfunction()

function(longhaul_doc_example page name program)
  longhaul_write_if_changed(${CMAKE_CURRENT_BINARY_DIR}/${name}.cc "${program}")
  longhaul_doc_program(${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
endfunction()

function(longhaul_doc_examples page)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} text)
  set(names "")
  longhaul_next_block("${text}" example cpp)
  while(name)
    list(APPEND names ${name})
    longhaul_doc_example(${page} ${name} "${body}")
    file(REMOVE ${CMAKE_CURRENT_BINARY_DIR}/${name}.out)
    longhaul_next_block("${rest}" example cpp)
  endwhile()
  longhaul_next_block("${text}" output text)
  while(name)
    if(NOT name IN_LIST names)
      message(FATAL_ERROR "${page}: the output of ${name}, which is not an example of this page")
    endif()
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.out "${body}")
    longhaul_next_block("${rest}" output text)
  endwhile()
endfunction()
