# cmake -DBUILD=FOLDER -P tests/test_programs.cmake: the programs of gtest that ctest runs there, a line for each:
#
#   NAME|KIND|WORKING_DIRECTORY|PROGRAM
#
# KIND is "processes" for a test with that label, which runs other programs, and else "unit".
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ctest --show-only=json-v1 WORKING_DIRECTORY ${BUILD} OUTPUT_VARIABLE all
                COMMAND_ERROR_IS_FATAL ANY)

# property_of(RESULT TEST NAME): the value of a property, its elements with commas between them; "" without it.
function(property_of result test name)
  set(${result} "" PARENT_SCOPE)
  string(JSON count ERROR_VARIABLE none LENGTH "${test}" properties)
  if(NOT count MATCHES "^[1-9]")
    return()
  endif()
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON property GET "${test}" properties ${i} name)
    if(property STREQUAL name)
      string(JSON value GET "${test}" properties ${i} value)
      string(REGEX REPLACE "^\\[ *\n? *\"|\"[ \n]*\\]$" "" value "${value}")
      string(REGEX REPLACE "\"[ \n]*,[ \n]*\"" "," value "${value}")
      set(${result} "${value}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

string(JSON count LENGTH "${all}" tests)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON test GET "${all}" tests ${i})
  string(JSON command ERROR_VARIABLE not_built GET "${test}" command)
  if(NOT command MATCHES "\"--gtest_brief=1\"")
    continue()
  endif()
  string(JSON name GET "${test}" name)
  string(JSON program GET "${test}" command 0)
  cmake_path(GET program FILENAME program_name)
  if(NOT name STREQUAL program_name)
    continue()  # it runs some of the program's tests: those that need something, or a part of them
  endif()
  property_of(labels "${test}" LABELS)
  property_of(directory "${test}" WORKING_DIRECTORY)
  set(kind unit)
  if(",${labels}," MATCHES ",processes,")
    set(kind processes)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${name}|${kind}|${directory}|${program}")
endforeach()
