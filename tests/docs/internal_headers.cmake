# cmake -P internal_headers.cmake, in a source tree: says how many headers are installed that are not in the list.
include(cmake/LonghaulHeaders.cmake)
longhaul_public_headers(.)
longhaul_with_includes(internal . ${headers})
list(REMOVE_ITEM internal ${headers})
list(LENGTH internal count)
message(${count})
