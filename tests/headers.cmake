# Each public header compiled alone, as part of the build: one source per header, in an object library per layer that has the
# layer's own include directories. The system's headers are precompiled for them, and none of ours; those on libtorch share
# runtime's precompiled header. include_lint.sh finds what that would hide.
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
  elseif(NOT name STREQUAL longhaul)
    target_precompile_headers(headers_of_${name} REUSE_FROM precompiled_system)
  endif()
endfunction()

function(longhaul_public_headers out pattern)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${pattern})
  list(FILTER headers EXCLUDE REGEX "_(internal|test|fixture)\\.h$")
  set(${out} ${headers} PARENT_SCOPE)
endfunction()

get_property(layers GLOBAL PROPERTY LONGHAUL_LAYERS)
foreach(layer ${layers})
  string(REPLACE "/" "_" name ${layer})
  longhaul_public_headers(headers longhaul/${layer}/*.h)
  longhaul_check_headers(${name} longhaul::${name} ${headers})
  list(APPEND all_layers longhaul::${name})
endforeach()

# What stands above the layers, where there is a layer to link that has all of them.
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/longhaul/*.h)
if(headers)
  longhaul_check_headers(longhaul "${all_layers}" ${headers})
endif()
