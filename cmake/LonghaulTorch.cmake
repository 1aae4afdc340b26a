# Another libtorch than the system's, by its folder: LONGHAUL_TORCH. PyTorch's wheels need no CUDA toolkit here, which
# their own package file asks for (docs/guide/own_libtorch.md). This file is installed too: find_package(longhaul) looks
# for the libtorch that the library was built with.
set(LONGHAUL_TESTED_TORCH 1.13 2.6 2.15)  # README.md has what was tested on each

# longhaul_torch_root(ROOT ERROR GIVEN): the folder with libtorch's include/ and lib/ that GIVEN means. It may also be
# the site-packages around it, the root of a Python environment, or its Python.
function(longhaul_torch_root root error given)
  set(${root} "" PARENT_SCOPE)
  set(${error} "" PARENT_SCOPE)
  if(NOT EXISTS "${given}")
    set(${error} "LONGHAUL_TORCH is ${given}, which does not exist" PARENT_SCOPE)
    return()
  endif()
  set(folder "${given}")
  if(NOT IS_DIRECTORY "${given}")
    execute_process(COMMAND "${given}" -c "from importlib.util import find_spec as find
import sys
print(find('torch').submodule_search_locations[0] if find('torch') else sys.prefix)"
                    OUTPUT_VARIABLE folder ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
    if(NOT status EQUAL 0 OR NOT IS_DIRECTORY "${folder}")
      set(${error} "LONGHAUL_TORCH is ${given}, which is neither a folder nor a Python" PARENT_SCOPE)
      return()
    endif()
  endif()
  file(GLOB in_pythons LIST_DIRECTORIES TRUE "${folder}/lib/python3*/site-packages/torch"
       "${folder}/lib64/python3*/site-packages/torch")
  foreach(place "${folder}" "${folder}/torch" ${in_pythons})
    if(EXISTS "${place}/lib/libtorch.so" AND IS_DIRECTORY "${place}/include/torch/csrc/api/include")
      get_filename_component(place "${place}" REALPATH)
      set(${root} "${place}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(remedy "It is the folder torch in the site-packages of a Python with PyTorch, or an unpacked libtorch")
  if(EXISTS "${folder}/bin/python3")
    set(remedy "It is a Python without PyTorch: run ${folder}/bin/python3 -m pip install torch")
  endif()
  set(${error} "LONGHAUL_TORCH is ${given}, where lib/libtorch.so and its headers are not. ${remedy}; leave it empty \
for the system's libtorch" PARENT_SCOPE)
endfunction()

# longhaul_torch_version(VERSION INCLUDE ...): "2.15.0", as the headers say in the first of these folders that has them;
# empty: none has.
function(longhaul_torch_version version)
  set(${version} "" PARENT_SCOPE)
  foreach(folder ${ARGN})
    foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h torch/version.h)
      if(NOT EXISTS "${folder}/${header}")
        continue()
      endif()
      set(found "")
      foreach(part MAJOR MINOR PATCH)
        file(STRINGS "${folder}/${header}" line REGEX "#define TORCH_VERSION_${part} +[0-9]+" LIMIT_COUNT 1)
        string(REGEX MATCH "[0-9]+$" number "${line}")
        list(APPEND found ${number})
      endforeach()
      list(LENGTH found parts)
      if(parts EQUAL 3)
        list(JOIN found . found)
        set(${version} ${found} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# longhaul_torch_version_warning(WARNING VERSION): empty: it is between the oldest and the newest that were tested.
function(longhaul_torch_version_warning warning version)
  set(${warning} "" PARENT_SCOPE)
  list(GET LONGHAUL_TESTED_TORCH 0 oldest)
  list(GET LONGHAUL_TESTED_TORCH -1 newest)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor "${version}")
  if(minor VERSION_LESS oldest OR minor VERSION_GREATER newest)
    list(JOIN LONGHAUL_TESTED_TORCH ", " tested)
    set(${warning} "libtorch ${version} is not among the versions that Longhaul was tested with: ${tested}"
        PARENT_SCOPE)
  endif()
endfunction()

# longhaul_torch_other_version(ERROR VERSION BUILT_WITH): empty, or that a program on the one cannot use a library that
# was built with the other: its classes have other members.
function(longhaul_torch_other_version error version built_with)
  set(${error} "" PARENT_SCOPE)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" has "${version}")
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" needs "${built_with}")
  if(NOT has STREQUAL needs)
    set(${error} "this Longhaul was built with libtorch ${built_with}, and libtorch ${version} was found: build it \
again with that one, or name one of ${needs} with LONGHAUL_TORCH" PARENT_SCOPE)
  endif()
endfunction()

# longhaul_torch_abi_error(ERROR ROOT): empty, or that its std::string is not that of today's compilers. In such a
# libtorch a function that takes one is named with "Ss".
function(longhaul_torch_abi_error error root)
  set(${error} "" PARENT_SCOPE)
  file(STRINGS "${root}/lib/libc10.so" old REGEX "torchCheckFailEPKcS2_jRKSs" LIMIT_COUNT 1)
  if(old)
    set(${error} "${root} is built for the std::string from before C++11 (_GLIBCXX_USE_CXX11_ABI=0), which programs of \
today's compilers cannot be linked with. Take a wheel of PyTorch 2.7 or later, or a zip called libtorch-cxx11-abi"
        PARENT_SCOPE)
  endif()
endfunction()

# longhaul_torch_calls_system_blas(OUT LIB): whether the libtorch in this folder calls the BLAS that the system's
# alternatives name (libblas.so.3), and has none within.
function(longhaul_torch_calls_system_blas out lib)
  set(${out} FALSE PARENT_SCOPE)
  execute_process(COMMAND "${CMAKE_READELF}" -d "${lib}/libtorch_cpu.so" OUTPUT_VARIABLE dynamic ERROR_QUIET)
  if(dynamic MATCHES "\\[libblas\\.so")
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# longhaul_link_torch_headers(FOLDER ROOT): makes a folder with links to libtorch's own headers. Beside them lie such of
# other libraries, fmt's and protobuf's in a wheel and any in a Conda environment, which must not come before those of
# the libraries that we link.
function(longhaul_link_torch_headers folder root)
  file(REMOVE_RECURSE "${folder}")
  file(MAKE_DIRECTORY "${folder}")
  foreach(name ATen c10 caffe2 torch)
    if(EXISTS "${root}/include/${name}")
      file(CREATE_LINK "${root}/include/${name}" "${folder}/${name}" SYMBOLIC)
    endif()
  endforeach()
endfunction()

# longhaul_torch_run_error(ERROR ROOT): empty: a program that links the target longhaul_libtorch runs. It is found out
# once for each build folder and libtorch.
function(longhaul_torch_run_error error root)
  set(${error} "" PARENT_SCOPE)
  string(MD5 key "${root} ${CMAKE_CXX_COMPILER}")
  if(CMAKE_CROSSCOMPILING OR LONGHAUL_TORCH_RUNS STREQUAL key)
    return()
  endif()
  set(source "${CMAKE_BINARY_DIR}/longhaul_torch/runs.cc")
  file(WRITE "${source}" "#include <ATen/Version.h>\n#include <iostream>\n\
int main() { std::cout << at::show_config(); }\n")
  try_run(status compiles SOURCES "${source}" NO_CACHE LINK_LIBRARIES longhaul_libtorch
          CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON COMPILE_OUTPUT_VARIABLE output RUN_OUTPUT_VARIABLE said)
  if(compiles AND status EQUAL 0)
    set(LONGHAUL_TORCH_RUNS ${key} CACHE INTERNAL "A program on this libtorch runs")
    return()
  endif()
  set(what "a program on the libtorch in ${root} does not link:\n${output}")
  if(compiles)
    set(what "a program on the libtorch in ${root} links, but does not run: ${said}")
  endif()
  if(what MATCHES "(lib(cu|nv|nccl)[^ :,]*\\.so[0-9.]*)[,:]")
    string(APPEND what "\nIt is built for CUDA, and ${CMAKE_MATCH_1} is not where it looks for it: install PyTorch's \
wheel with its dependencies (pip install torch, without --no-deps), or take a build for the CPU")
  endif()
  set(${error} "${what}" PARENT_SCOPE)
endfunction()

# longhaul_find_torch(ERROR GIVEN): makes the target longhaul_libtorch of it, and sets LONGHAUL_TORCH_ROOT and
# LONGHAUL_TORCH_VERSION; or ERROR to a text.
function(longhaul_find_torch error given)
  set(${error} "" PARENT_SCOPE)
  longhaul_torch_root(root problem "${given}")
  if(NOT problem)
    longhaul_torch_abi_error(problem "${root}")
  endif()
  longhaul_torch_version(version "${root}/include")
  if(NOT problem AND NOT version)
    set(problem "the headers in ${root}/include do not say which version of libtorch they are of")
  endif()
  if(problem)
    set(${error} "${problem}" PARENT_SCOPE)
    return()
  endif()
  longhaul_torch_version_warning(warning ${version})
  if(warning)
    message(WARNING "${warning}")
  endif()
  if(NOT TARGET longhaul_libtorch)
    string(MD5 key "${root} ${version}")  # objects depend on the folder's name: another libtorch, another name
    string(SUBSTRING ${key} 0 8 key)
    set(headers "${CMAKE_BINARY_DIR}/longhaul_torch/${version}-${key}")
    longhaul_link_torch_headers("${headers}" "${root}")
    add_library(longhaul_libtorch INTERFACE IMPORTED GLOBAL)
    # Nothing refers to libtorch.so itself, which has the devices' libraries loaded: a linker may leave it out.
    set_target_properties(longhaul_libtorch PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${headers};${headers}/torch/csrc/api/include"
      INTERFACE_LINK_LIBRARIES "-Wl,--push-state,--no-as-needed,\"${root}/lib/libtorch.so\",--pop-state;\
${root}/lib/libtorch_cpu.so;${root}/lib/libc10.so;Threads::Threads")
    longhaul_torch_run_error(problem "${root}")
  endif()
  set(${error} "${problem}" PARENT_SCOPE)
  set(LONGHAUL_TORCH_ROOT "${root}" PARENT_SCOPE)
  set(LONGHAUL_TORCH_VERSION ${version} PARENT_SCOPE)
endfunction()
