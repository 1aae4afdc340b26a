# The headers that are installed: the public ones (public_headers.txt) and what these include. It runs also without a
# project, when the library is installed and in tests, so that no list of them can be out of date.
cmake_policy(VERSION 3.25)

# longhaul_public_headers(SOURCE): sets in the caller: headers, all public ones; components, what they need, each once;
# headers_of_COMPONENT.
function(longhaul_public_headers source)
  file(STRINGS ${source}/cmake/public_headers.txt lines REGEX "^longhaul/")
  set(headers "")
  set(components "")
  foreach(line ${lines})
    string(REPLACE " " ";" words ${line})
    list(GET words 0 header)
    list(GET words 1 component)
    list(APPEND headers ${header})
    list(APPEND components ${component})
    list(APPEND of_${component} ${header})
  endforeach()
  list(REMOVE_DUPLICATES components)
  foreach(component ${components})
    set(headers_of_${component} ${of_${component}} PARENT_SCOPE)
  endforeach()
  set(headers ${headers} PARENT_SCOPE)
  set(components ${components} PARENT_SCOPE)
endfunction()

# longhaul_includes(OUT SOURCE HEADER): the headers of ours that it includes. A message's header includes those of the
# messages that its .proto imports.
function(longhaul_includes out source header)
  set(file ${source}/${header})
  set(line "#include \"")
  if(header MATCHES "\\.pb\\.h$")
    string(REGEX REPLACE "\\.pb\\.h$" ".proto" file ${file})
    set(line "import \"")
  endif()
  file(STRINGS ${file} includes REGEX "^${line}longhaul/")
  list(TRANSFORM includes REPLACE "^${line}([^\"]*)\".*" "\\1")
  list(TRANSFORM includes REPLACE "\\.proto$" ".pb.h")
  set(${out} ${includes} PARENT_SCOPE)
endfunction()

# longhaul_with_includes(OUT SOURCE HEADER ...): these, and all that they include, sorted.
function(longhaul_with_includes out source)
  set(found "")
  set(next ${ARGN})
  while(next)
    list(POP_FRONT next header)
    if(NOT header IN_LIST found)
      list(APPEND found ${header})
      longhaul_includes(includes ${source} ${header})
      list(APPEND next ${includes})
    endif()
  endwhile()
  list(SORT found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# longhaul_install_headers(SOURCE BINARY DESTINATION): for a script of an installation. Messages' headers are in the
# build directory.
function(longhaul_install_headers source binary destination)
  longhaul_public_headers(${source})
  longhaul_with_includes(installed ${source} ${headers})
  foreach(header ${installed})
    cmake_path(GET header PARENT_PATH folder)
    set(file ${source}/${header})
    if(header MATCHES "\\.pb\\.h$")
      set(file ${binary}/${header})
    endif()
    file(INSTALL DESTINATION ${destination}/${folder} TYPE FILE FILES ${file})
  endforeach()
  set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} PARENT_SCOPE)  # of the installation's script
endfunction()
