# Runs a command in ${WORK}, and sets step_output; stops with its output where it fails.
function(run_step)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE status
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")
    message(FATAL_ERROR "status ${status}: ${command}")
  endif()
  set(step_output "${output}" PARENT_SCOPE)
endfunction()
