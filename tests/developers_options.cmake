# Stops where a build that is none of a developer's has a developer's options: -Werror, or the -O1 and -O0 of what is not run in
# each step, which a Release build alone could have.
function(refuse_developers_options build)
  file(STRINGS ${build}/build.ninja lines REGEX " -(Werror|O[01])( |$)")
  if(lines)
    list(GET lines 0 line)
    message(FATAL_ERROR "${build}/build.ninja has options for developers: ${line}")
  endif()
endfunction()

# Stops where something of a Release build is compiled without -O2 or -O3: what is installed is as fast in every layer.
function(require_optimisation build)
  file(STRINGS ${build}/build.ninja lines REGEX "^  FLAGS = ")
  if(NOT lines)
    message(FATAL_ERROR "${build}/build.ninja compiles nothing")
  endif()
  list(FILTER lines EXCLUDE REGEX " -O[23]( |$)")
  if(lines)
    list(GET lines 0 line)
    message(FATAL_ERROR "${build}/build.ninja does not optimise: ${line}")
  endif()
endfunction()
