# cmake --install: the layers, their public headers and a package for find_package(longhaul).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY LONGHAUL_LAYERS)
list(TRANSFORM layers PREPEND longhaul_ OUTPUT_VARIABLE targets)
install(TARGETS longhaul_torch EXPORT longhaulTargets)
install(TARGETS ${targets} EXPORT longhaulTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY longhaul DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE PATTERN "*_test.h" EXCLUDE PATTERN "*_fixture.h" EXCLUDE)
get_target_property(generated longhaul_proto LONGHAUL_GENERATED_HEADERS)
install(FILES ${generated} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/longhaul/proto)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/longhaul)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/longhaulConfig.cmake.in
  ${PROJECT_BINARY_DIR}/longhaulConfig.cmake INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/longhaulConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/longhaulConfig.cmake ${PROJECT_BINARY_DIR}/longhaulConfigVersion.cmake
  DESTINATION ${package_directory})
install(EXPORT longhaulTargets NAMESPACE longhaul:: DESTINATION ${package_directory})
