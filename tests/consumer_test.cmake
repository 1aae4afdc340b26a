# cmake -D BUILD=<build directory of longhaul> -D WORK=<scratch directory> -P consumer_test.cmake: installs the library to a
# fresh prefix, then configures, builds and runs the programs in tests/consumer against it; the last one by pkg-config, too.
include(${CMAKE_CURRENT_LIST_DIR}/run_step.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run_step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(GLOB_RECURSE installed RELATIVE ${WORK}/prefix ${WORK}/prefix/include/*)
list(FILTER installed INCLUDE REGEX "_(internal|test|fixture)\\.h$")
if(installed)
  message(FATAL_ERROR "not for the public, but installed: ${installed}")
endif()
run_step(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G Ninja
         -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run_step(${CMAKE_COMMAND} --build ${WORK}/build)
file(GLOB programs LIST_DIRECTORIES FALSE ${WORK}/build/bin/*)
if(NOT programs)
  message(FATAL_ERROR "nothing was built in ${WORK}/build/bin")
endif()
foreach(program ${programs})
  run_step(${program})
endforeach()

file(GLOB_RECURSE package ${WORK}/prefix/longhaul.pc)
get_filename_component(packages "${package}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${packages})
set(source ${CMAKE_CURRENT_LIST_DIR}/consumer/training.cc)
run_step(sh -c "c++ -std=c++20 ${source} -o by_pkg_config $(pkg-config --cflags --libs longhaul)")
run_step(${WORK}/by_pkg_config)

execute_process(COMMAND sh -c "c++ -std=c++17 -fsyntax-only ${source} $(pkg-config --cflags longhaul)" RESULT_VARIABLE status
                ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "#error \"C\\+\\+20 is needed")
  message(FATAL_ERROR "a compiler that is set to C++17 says:\n${output}")
endif()
