# cmake -D SOURCE=<Longhaul's source> -D WORK=<scratch directory> -P subproject_test.cmake: configures tests/subproject, with
# static libraries and with shared ones, and builds and runs what needs the lowest layer alone.
function(run_step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message("${output}")
    message(FATAL_ERROR "status ${status}: ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
foreach(shared OFF ON)
  run_step(${CMAKE_COMMAND} -S ${SOURCE}/tests/subproject -B ${WORK}/${shared} -G Ninja -DLONGHAUL_SOURCE=${SOURCE}
           -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=${shared})
  run_step(${CMAKE_COMMAND} --build ${WORK}/${shared} --target errors)
  run_step(${WORK}/${shared}/errors)
endforeach()
