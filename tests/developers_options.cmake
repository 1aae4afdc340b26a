# Stops where a build that is none of a developer's has a developer's options: -Werror, or the -O1 of what is not run in
# each step, which a Release build alone could have.
function(refuse_developers_options build)
  file(STRINGS ${build}/build.ninja lines REGEX " -(Werror|O1)( |$)")
  if(lines)
    list(GET lines 0 line)
    message(FATAL_ERROR "${build}/build.ninja has options for developers: ${line}")
  endif()
endfunction()
