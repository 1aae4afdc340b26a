# Each header of a layer is compiled alone, with nothing of ours before it, and so has what it needs. Most have a .cc of
# their name, whose first include they are (include_lint.sh), and which is compiled alone: by the build
# (longhaul_compiles_alone), or by clang for the test thread_safety. The others are compiled here, as part of the build:
# one source per header, in an object library per layer that has the layer's own include directories.
#
# The system's headers are precompiled for them, and none of ours; those on libtorch share runtime's precompiled header.
# include_lint.sh finds what that would hide. Headers of tests and *_internal.h are left to those who include them, and
# what stands above the layers, for users, to the test consumer, which compiles it as it is installed.
find_program(LONGHAUL_CLANG clang++)  # as tests/with_tool.sh looks for it
longhaul_precompile(precompiled_system HEADERS ${CMAKE_CURRENT_SOURCE_DIR}/precompiled_system.h)

function(longhaul_write_includes file)
  list(TRANSFORM ARGN PREPEND "#include \"")
  list(TRANSFORM ARGN APPEND "\"")
  string(REPLACE ";" "\n" text "${ARGN}")
  file(GENERATE OUTPUT ${file} CONTENT "${text}\n")
endfunction()

# longhaul_compiles_alone(OUT NAME): whether each source of the layer is compiled alone, with no other headers before it
# than the headers that are compiled here have.
function(longhaul_compiles_alone out name)
  get_target_property(grouped longhaul_${name} UNITY_BUILD)
  get_target_property(precompiled longhaul_${name} PRECOMPILE_HEADERS)
  get_target_property(reused longhaul_${name} PRECOMPILE_HEADERS_REUSE_FROM)
  set(alone ON)
  if(grouped OR (NOT name MATCHES "^(runtime|binding|trainer)$" AND (precompiled OR reused)))
    set(alone OFF)
  endif()
  if(LONGHAUL_CLANG AND NOT name MATCHES "^(runtime|binding|cluster|trainer)$")  # thread_safety.cmake
    set(alone ON)
  endif()
  set(${out} ${alone} PARENT_SCOPE)
endfunction()

# longhaul_without_own_source(OUT LAYER HEADER ...): those of the layer's headers that have no .cc of their name.
function(longhaul_without_own_source out layer)
  string(REPLACE "/" "_" name ${layer})
  get_target_property(sources longhaul_${name} SOURCES)
  set(without "")
  foreach(header ${ARGN})
    string(REGEX REPLACE "^longhaul/${layer}/(.*)\\.h$" "\\1.cc" source ${header})
    if(NOT source IN_LIST sources)
      list(APPEND without ${header})
    endif()
  endforeach()
  set(${out} ${without} PARENT_SCOPE)
endfunction()

function(longhaul_check_headers name libraries)
  set(sources "")
  foreach(header ${ARGN})
    string(REPLACE "/" "_" file ${header})
    list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/headers/${file}.cc)
    longhaul_write_includes(${CMAKE_CURRENT_BINARY_DIR}/headers/${file}.cc ${header})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(headers_of_${name} OBJECT ${sources})
  # fmt: as the precompiled header
  target_link_libraries(headers_of_${name} PRIVATE ${libraries} fmt::fmt longhaul_flags)
  if(name MATCHES "^(runtime|binding|cluster_worker|trainer)$")
    target_precompile_headers(headers_of_${name} REUSE_FROM longhaul_runtime)
  else()
    target_precompile_headers(headers_of_${name} REUSE_FROM precompiled_system)
  endif()
endfunction()

get_property(layers GLOBAL PROPERTY LONGHAUL_LAYERS)
foreach(layer ${layers})
  string(REPLACE "/" "_" name ${layer})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/longhaul/${layer}/*.h)
  list(FILTER headers EXCLUDE REGEX "_(internal|test|fixture)\\.h$")
  longhaul_compiles_alone(alone ${name})
  if(alone)
    longhaul_without_own_source(headers ${layer} ${headers})
  endif()
  longhaul_check_headers(${name} longhaul::${name} ${headers})
endforeach()
