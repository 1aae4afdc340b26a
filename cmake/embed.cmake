# cmake -DOUT=FILE.cc -DNAMES="NAME ..." -DFILES="FILE ..." -P embed.cmake: a source that has the bytes of each file as
# longhaul::embedded::NAME.
separate_arguments(NAMES)
separate_arguments(FILES)
set(text "#include <string_view>\n\nnamespace longhaul::embedded {\n")
foreach(name file IN ZIP_LISTS NAMES FILES)
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "${file}, which `longhaul board` has within, is not there: "
                        "apt-get install libjs-dygraphs, or see scripts/lib.sh for all packages")
  endif()
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")  # lines of 16 bytes
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND text "static const char bytes_of_${name}[] = {${bytes}};\n"
                     "extern const std::string_view ${name};\n"
                     "const std::string_view ${name}(bytes_of_${name}, sizeof bytes_of_${name});\n")
endforeach()
file(WRITE "${OUT}" "${text}}  // namespace longhaul::embedded\n")
