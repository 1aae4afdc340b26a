# Each header of a layer compiled alone, as part of the build: one source per header, in an object library per layer that has
# the layer's own include directories. The system's headers are precompiled for them, and none of ours; those on libtorch share
# runtime's precompiled header. include_lint.sh finds what that would hide. Headers of tests and *_internal.h are left to those
# who include them, and what stands above the layers, for users, to the test consumer, which compiles it as it is installed.
longhaul_precompile(precompiled_system HEADERS ${CMAKE_CURRENT_SOURCE_DIR}/precompiled_system.h)

function(longhaul_write_includes file)
  list(TRANSFORM ARGN PREPEND "#include \"")
  list(TRANSFORM ARGN APPEND "\"")
  string(REPLACE ";" "\n" text "${ARGN}")
  file(GENERATE OUTPUT ${file} CONTENT "${text}\n")
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
  target_link_libraries(headers_of_${name} PRIVATE ${libraries} fmt::fmt longhaul_flags)  # fmt: as the precompiled header
  if(name MATCHES "^(runtime|binding)$")
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
  longhaul_check_headers(${name} longhaul::${name} ${headers})
endforeach()
