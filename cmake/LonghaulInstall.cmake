# cmake --install: the layers, the public headers with what they include, a package for find_package(longhaul) and a
# file for pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY LONGHAUL_LAYERS)
string(REPLACE "/" "_" libraries "${libraries}")
get_property(sums GLOBAL PROPERTY LONGHAUL_SUMS)
set(layers ${libraries} ${sums})
list(TRANSFORM layers PREPEND longhaul_ OUTPUT_VARIABLE targets)
install(TARGETS longhaul_torch EXPORT longhaulTargets)
install(TARGETS ${targets} EXPORT longhaulTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(LONGHAUL_TOOLS)
  set_target_properties(longhaul_program PROPERTIES INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})
  install(TARGETS longhaul_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS longhaul_torch_facts RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/longhaul)
  set(made ${PROJECT_BINARY_DIR}/tools/longhaul)
  install(FILES ${made}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${made}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME longhaul)
  install(FILES ${made}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# A developer's build has layers that are less optimised (LONGHAUL_COLD_OPTIONS): whoever installs it is told so.
if(LONGHAUL_DEVELOPER)
  install(CODE "
string(TOLOWER \"\${CMAKE_INSTALL_CONFIG_NAME}\" config)
if(config STREQUAL \"release\")
  message(WARNING \"${PROJECT_BINARY_DIR} is a developer's build: layers that no step waits for are compiled \"
                  \"with -O1. For a library to install, configure with -DLONGHAUL_DEVELOPER=OFF.\")
endif()")
endif()
# Which headers are included is found out when they are installed: the configuration may be older than an #include.
install(CODE "
include(\"${PROJECT_SOURCE_DIR}/cmake/LonghaulHeaders.cmake\")
set(include_directory \"${CMAKE_INSTALL_INCLUDEDIR}\")
cmake_path(ABSOLUTE_PATH include_directory BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
longhaul_install_headers(\"${PROJECT_SOURCE_DIR}\" \"${PROJECT_BINARY_DIR}\" \"\${include_directory}\")")

# What find_package() tells whoever names something else: the components of the public headers, and of which of them a
# header or a room ("saver", "saving") is a part.
include(LonghaulHeaders)
longhaul_public_headers(${PROJECT_SOURCE_DIR})
set(parts "")
foreach(component ${components})
  foreach(header ${headers_of_${component}})
    cmake_path(GET header STEM part)
    list(APPEND parts ${part}=${component})
  endforeach()
endforeach()
get_property(rooms GLOBAL PROPERTY LONGHAUL_LAYERS)
list(FILTER rooms INCLUDE REGEX /)
list(TRANSFORM rooms REPLACE "^([^/]*)/(.*)$" "\\2=\\1" OUTPUT_VARIABLE rooms)
list(APPEND parts ${rooms})
list(REMOVE_DUPLICATES parts)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/longhaul)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/longhaulConfig.cmake.in
  ${PROJECT_BINARY_DIR}/longhaulConfig.cmake INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/longhaulConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/longhaulConfig.cmake ${PROJECT_BINARY_DIR}/longhaulConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/LonghaulTorch.cmake DESTINATION ${package_directory})
install(EXPORT longhaulTargets NAMESPACE longhaul:: DESTINATION ${package_directory})

# For pkg-config, which knows no targets: libtorch and what else has no file of its own is named as the linker does.
list(REVERSE libraries)
list(TRANSFORM libraries PREPEND " -llonghaul_")
string(CONCAT layer_libraries ${libraries})
if(LONGHAUL_TORCH)
  # The links that longhaul_link_torch_headers() made are installed for these programs; CMake's make their own.
  get_target_property(links longhaul_libtorch INTERFACE_INCLUDE_DIRECTORIES)
  list(GET links 0 links)
  set(torch_links ${CMAKE_INSTALL_LIBDIR}/longhaul/torch)
  install(DIRECTORY ${links}/ DESTINATION ${torch_links})
  set(torch_includes "-isystem \${prefix}/${torch_links} -isystem \${prefix}/${torch_links}/torch/csrc/api/include")
  get_target_property(torch_libraries longhaul_libtorch INTERFACE_LINK_LIBRARIES)
  list(FILTER torch_libraries INCLUDE REGEX "/")
  list(JOIN torch_libraries " " torch_libraries)
  string(APPEND torch_libraries " -Wl,-rpath,${torch_libraries_folder}")
else()
  list(TRANSFORM TORCH_INCLUDE_DIRS PREPEND "-isystem " OUTPUT_VARIABLE torch_includes)
  list(REMOVE_ITEM torch_includes "-isystem /usr/include")
  list(JOIN torch_includes " " torch_includes)
  set(torch_libraries "-ltorch -ltorch_cpu -lc10")
  if(torch_libraries_folder AND NOT torch_libraries_folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND torch_libraries "-L${torch_libraries_folder} -Wl,-rpath,${torch_libraries_folder} ")
  endif()
endif()
if(torch_calls_system_blas AND OPENBLAS_LIBRARY)
  string(APPEND torch_libraries " ${OPENBLAS_LIBRARY}")
endif()
# The prefix is known when it is installed (cmake --install --prefix): what depends on it is filled in then.
foreach(name install_prefix install_libdir install_includedir)
  set(${name} "@${name}@")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/longhaul.pc.in ${PROJECT_BINARY_DIR}/longhaul.pc.in @ONLY)
install(CODE "
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX NORMALIZE OUTPUT_VARIABLE install_prefix)
set(install_libdir \"${CMAKE_INSTALL_LIBDIR}\")
set(install_includedir \"${CMAKE_INSTALL_INCLUDEDIR}\")
cmake_path(ABSOLUTE_PATH install_libdir BASE_DIRECTORY \"\${install_prefix}\" NORMALIZE)
cmake_path(ABSOLUTE_PATH install_includedir BASE_DIRECTORY \"\${install_prefix}\" NORMALIZE)
configure_file(\"${PROJECT_BINARY_DIR}/longhaul.pc.in\" \"${PROJECT_BINARY_DIR}/longhaul.pc\" @ONLY)
file(INSTALL DESTINATION \"\${install_libdir}/pkgconfig\" TYPE FILE FILES \"${PROJECT_BINARY_DIR}/longhaul.pc\")")
