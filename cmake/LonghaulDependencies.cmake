# Every library we build on, found once. The names are Debian's; see docs/architecture.md for what each is for.
# A program that has us by add_subdirectory() or FetchContent links them too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(leveldb REQUIRED)
find_package(Snappy REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(gRPC CONFIG REQUIRED)
find_package(nlohmann_json REQUIRED)  # headers alone: nothing is linked
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET GLOBAL libisal)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET GLOBAL liburing)

# libtorch: another one than the system's (newer, or with CUDA) is found by CMAKE_PREFIX_PATH.
find_package(Torch REQUIRED)
add_library(longhaul_torch INTERFACE)
set_target_properties(longhaul_torch PROPERTIES EXPORT_NAME torch)
target_include_directories(longhaul_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(longhaul_torch INTERFACE ${TORCH_LIBRARIES})
# Debian's libtorch calls whatever BLAS the system's alternatives name; the fast one is linked by its own name.
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
if(OPENBLAS_LIBRARY)
  target_link_libraries(longhaul_torch INTERFACE ${OPENBLAS_LIBRARY})
endif()
