# cmake -D SOURCE=<Longhaul's source> -D WORK=<scratch directory> -D LONGHAUL_TORCH=<libtorch's folder; empty: the
# system's> -P subproject_test.cmake: configures tests/subproject, with static libraries and with shared ones, and
# builds and runs what needs the lowest layer alone. Configures Longhaul too, as README says for a library to install:
# each file of each layer is optimised, and the installation does not warn. ./scripts/test-shared builds all of it.
include(${CMAKE_CURRENT_LIST_DIR}/run_step.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/developers_options.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
foreach(shared OFF ON)
  run_step(${CMAKE_COMMAND} -S ${SOURCE}/tests/subproject -B ${WORK}/${shared} -G Ninja -DLONGHAUL_SOURCE=${SOURCE}
           -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=${shared} -DLONGHAUL_TORCH=${LONGHAUL_TORCH})
  refuse_developers_options(${WORK}/${shared})
  require_optimisation(${WORK}/${shared})
  run_step(${CMAKE_COMMAND} --build ${WORK}/${shared} --target errors)
  run_step(${WORK}/${shared}/errors)
endforeach()

file(STRINGS ${SOURCE}/README.md configure REGEX "^cmake -B [^ ]+ ")
if(NOT configure MATCHES "^cmake -B build/library ([^;]+)$")
  message(FATAL_ERROR "README.md does not have one command that configures a library to install: ${configure}")
endif()
separate_arguments(options UNIX_COMMAND "${CMAKE_MATCH_1}")
foreach(command "cmake --build build/library" "cmake --install build/library --prefix ")
  file(STRINGS ${SOURCE}/README.md lines REGEX "^${command}")
  if(NOT lines)
    message(FATAL_ERROR "README.md configures a library to install, and lacks: ${command}")
  endif()
endforeach()
run_step(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/library ${options} -DLONGHAUL_TORCH=${LONGHAUL_TORCH})
refuse_developers_options(${WORK}/library)
require_optimisation(${WORK}/library)
file(READ ${WORK}/library/cmake_install.cmake installation)
if(NOT installation MATCHES "longhaul_install_headers" OR installation MATCHES "developer's build")
  message(FATAL_ERROR "${WORK}/library/cmake_install.cmake installs nothing, or warns of a developer's build")
endif()
