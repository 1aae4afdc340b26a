# cmake -D PROGRAM=<program> -D WORK=<scratch directory> -D EXPECTED=<file> -P run_example.cmake: runs the program in an
# empty directory. It must succeed, and print exactly what the file holds, if there is one, with "..." for that
# directory.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${WORK} TIMEOUT 60
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "status ${status}, after printing:\n${output}${error}")
endif()
string(REPLACE "${WORK}/" ".../" output "${output}")
if(EXISTS ${EXPECTED})
  file(READ ${EXPECTED} expected)
  if(NOT output STREQUAL expected)
    message(FATAL_ERROR "the page shows:\n${expected}but the program printed:\n${output}${error}")
  endif()
endif()
