# cmake -D BUILD=<build directory of longhaul> -D WORK=<scratch directory> -P consumer_test.cmake: installs the library
# to a fresh prefix, then configures, builds and runs the programs in tests/consumer against it; one of them by
# pkg-config, too. Before that each public header is compiled (consumer/headers), and installed is what these have read,
# and nothing else.
include(${CMAKE_CURRENT_LIST_DIR}/run_step.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/developers_options.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/../cmake/LonghaulHeaders.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run_step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
is_less_optimised(expected ${BUILD})
string(FIND "${step_output}" "-DLONGHAUL_DEVELOPER=OFF" at)
if((expected AND at EQUAL -1) OR (NOT expected AND NOT at EQUAL -1))
  message(FATAL_ERROR "warning of a developer's build expected: ${expected}; the installation says:\n${step_output}")
endif()

run_step(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer/headers -B ${WORK}/headers -G Ninja
         -DCMAKE_PREFIX_PATH=${WORK}/prefix -DLONGHAUL_SOURCE=${CMAKE_CURRENT_LIST_DIR}/..)
run_step(${CMAKE_COMMAND} --build ${WORK}/headers)
find_program(ninja NAMES ninja ninja-build REQUIRED)
execute_process(COMMAND ${ninja} -C ${WORK}/headers -t deps OUTPUT_VARIABLE read COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "/prefix/include/longhaul/[^ \n]+" read "${read}")
list(TRANSFORM read REPLACE "^/prefix/include/" "")

# Public is what the list has, and what these headers read. All else that lies there is internal.
file(GLOB_RECURSE installed RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*)
longhaul_public_headers(${CMAKE_CURRENT_LIST_DIR}/..)
set(internal ${installed})
list(REMOVE_ITEM internal ${headers} ${read})
set(for_tests ${installed})
list(FILTER for_tests INCLUDE REGEX "_(internal|test|fixture)\\.h$")
if(NOT read OR internal OR for_tests)
  message(FATAL_ERROR "installed, but no public header (cmake/public_headers.txt) includes it: ${internal}; "
                      "or it is for tests: ${for_tests}")
endif()
set(missing ${headers})
list(REMOVE_ITEM missing ${installed})
if(NOT headers OR missing)
  message(FATAL_ERROR "public (cmake/public_headers.txt), but not installed: ${missing}")
endif()

run_step(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G Ninja
         -DCMAKE_PREFIX_PATH=${WORK}/prefix)
refuse_developers_options(${WORK}/build)
run_step(${CMAKE_COMMAND} --build ${WORK}/build)
file(GLOB programs LIST_DIRECTORIES FALSE ${WORK}/build/bin/*)
if(NOT programs)
  message(FATAL_ERROR "nothing was built in ${WORK}/build/bin")
endif()
foreach(variable OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS)
  unset(ENV{${variable}})
endforeach()
foreach(program ${programs})
  run_step(${program})
endforeach()
run_step(${CMAKE_COMMAND} -E env OMP_NUM_THREADS=2 ${WORK}/build/bin/threads OMP_NUM_THREADS)
run_step(${CMAKE_COMMAND} -E env OPENBLAS_NUM_THREADS=2 ${WORK}/build/bin/threads OPENBLAS_NUM_THREADS)
run_step(${WORK}/build/bin/threads program)

function(expect_refusal component pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer/refused -B ${WORK}/refused_${component}
                          -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCOMPONENTS=${component}
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "linking longhaul::longhaul with COMPONENTS ${component} says:\n${output}")
  endif()
endfunction()
expect_refusal(trian
  "there is no component trian\\. The components are: longhaul train session [a-z ]* base proto[^_a-z]")
expect_refusal(hooks "there is no component hooks: it is part of train\\. The components are: longhaul train ")
expect_refusal(saving "there is no component saving: it is part of train\\.")
expect_refusal(retention "there is no component retention: it is part of checkpoint\\.")
expect_refusal(events "longhaul::not_among_the_COMPONENTS_of_find_package_since_it_needs_libtorch")

file(GLOB_RECURSE package ${WORK}/prefix/longhaul.pc)
get_filename_component(packages "${package}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${packages})
set(source ${CMAKE_CURRENT_LIST_DIR}/consumer/training.cc)
execute_process(COMMAND pkg-config --cflags --libs longhaul OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
if(NOT flags MATCHES "-I${WORK}/prefix/include " OR flags MATCHES "/\\.\\.|//")
  message(FATAL_ERROR "paths of pkg-config are not as they are installed: ${flags}")
endif()
set(warnings "-Wall -Wextra -Wshadow -Werror")
run_step(sh -c "c++ -std=c++20 ${warnings} ${source} -o by_pkg_config $(pkg-config --cflags --libs longhaul)")
run_step(${WORK}/by_pkg_config)

execute_process(COMMAND sh -c "c++ -std=c++17 -fsyntax-only ${source} $(pkg-config --cflags longhaul)"
                RESULT_VARIABLE status ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "#error \"C\\+\\+20 is needed")
  message(FATAL_ERROR "a compiler that is set to C++17 says:\n${output}")
endif()
