# Stops where a build that is none of a developer's has a developer's options: -Werror, or the -O1 and -O0 of what is
# not run in each step, which a Release build alone could have.
function(refuse_developers_options build)
  file(STRINGS ${build}/build.ninja lines REGEX " -(Werror|O[01])( |$)")
  if(lines)
    list(GET lines 0 line)
    message(FATAL_ERROR "${build}/build.ninja has options for developers: ${line}")
  endif()
endfunction()

# Stops where something of a Release build is compiled without -O2 or -O3, or with another -O that follows, which wins:
# what is installed is as fast in every layer.
function(require_optimisation build)
  file(STRINGS ${build}/build.ninja lines REGEX "^  FLAGS = ")
  if(NOT lines)
    message(FATAL_ERROR "${build}/build.ninja compiles nothing")
  endif()
  list(FILTER lines EXCLUDE REGEX " -O[23]( +(-[^O ]|[^- ])[^ ]*)* *$")
  if(lines)
    list(GET lines 0 line)
    message(FATAL_ERROR "${build}/build.ninja does not optimise: ${line}")
  endif()
endfunction()

# Sets, in the caller, whether an installation of the build warns: it is a developer's, and a Release build, so that
# layers are compiled with -O1.
function(is_less_optimised out build)
  file(STRINGS ${build}/CMakeCache.txt lines REGEX "^(LONGHAUL_DEVELOPER:BOOL=ON|CMAKE_BUILD_TYPE:STRING=(Release)?)$")
  list(LENGTH lines count)
  if(count EQUAL 2)
    set(${out} ON PARENT_SCOPE)
  else()
    set(${out} OFF PARENT_SCOPE)
  endif()
endfunction()
