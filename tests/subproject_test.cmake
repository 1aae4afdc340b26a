# cmake -D SOURCE=<Longhaul's source> -D WORK=<scratch directory> -P subproject_test.cmake: configures tests/subproject, with
# static libraries and with shared ones, and builds and runs what needs the lowest layer alone. ./scripts/test-shared
# builds all of it.
include(${CMAKE_CURRENT_LIST_DIR}/run_step.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/developers_options.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
foreach(shared OFF ON)
  run_step(${CMAKE_COMMAND} -S ${SOURCE}/tests/subproject -B ${WORK}/${shared} -G Ninja -DLONGHAUL_SOURCE=${SOURCE}
           -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=${shared})
  refuse_developers_options(${WORK}/${shared})
  require_optimisation(${WORK}/${shared})
  run_step(${CMAKE_COMMAND} --build ${WORK}/${shared} --target errors)
  run_step(${WORK}/${shared}/errors)
endforeach()
