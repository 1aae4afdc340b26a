# longhaul_layer(NAME SOURCES ... [DEPENDS layer ...] [LINK library ...] [LINK_PRIVATE library ...] [TESTS ...]
#                [TEST_DEPENDS layer ...] [TEST_NEEDS need ...] [PCH header ...] [REUSE_FROM target] [COLD | GROUPED])
# makes the library longhaul::NAME and, for developers, its test program NAME_test (cmake/LonghaulTest.cmake). Its
# sources use the common precompiled header (longhaul_precompile), or one with the headers of PCH, or that of the target
# REUSE_FROM. GROUPED sources are compiled several files at a time (longhaul_group). COLD sources, such as those that
# build graphs, are GROUPED too, and less optimised in developers' builds.
#
# A layer with many files has rooms: layers of their own in its subfolders. longhaul_layer(train/saving ...) makes
# longhaul::train_saving from longhaul/train/saving. The tests of all rooms are one program (longhaul_rooms). Each
# CMakeLists.txt begins with a comment that says what the folder contains; scripts/draw-house copies it into
# docs/architecture.md.
#
# The arrows between the layers. A layer names in DEPENDS what is listed here, no more and no less; anything else stops
# the configuration. Each arrow is used by an include (tests/house_lint.sh); what only tests use is in TEST_DEPENDS. The
# list goes from the ground up: an arrow leads to a line above its own, so there is no circle. An arrow to a layer with
# rooms leads to all of them.
set(LONGHAUL_ARROWS_base "")
set(LONGHAUL_ARROWS_tensor base)
set(LONGHAUL_ARROWS_io base)
set(LONGHAUL_ARROWS_stacks base)
set(LONGHAUL_ARROWS_proto base)
set(LONGHAUL_ARROWS_credentials base)
set(LONGHAUL_ARROWS_status base credentials)
set(LONGHAUL_ARROWS_data base tensor)
set(LONGHAUL_ARROWS_media base tensor)
set(LONGHAUL_ARROWS_events base tensor io proto media)
set(LONGHAUL_ARROWS_checkpoint/table base io)
set(LONGHAUL_ARROWS_checkpoint/files base io proto checkpoint/table)
set(LONGHAUL_ARROWS_checkpoint/bundle base tensor io proto checkpoint/table checkpoint/files)
set(LONGHAUL_ARROWS_checkpoint/directory base tensor io proto checkpoint/files checkpoint/bundle)
set(LONGHAUL_ARROWS_checkpoint/retention base tensor io checkpoint/files checkpoint/bundle checkpoint/directory)
set(LONGHAUL_ARROWS_checkpoint/safetensors base tensor io checkpoint/table checkpoint/files checkpoint/bundle
    checkpoint/directory)
set(LONGHAUL_ARROWS_checkpoint/torch_archive base tensor io)
set(LONGHAUL_ARROWS_checkpoint/state_dict base tensor io checkpoint/files checkpoint/bundle checkpoint/directory
    checkpoint/safetensors checkpoint/torch_archive)
set(LONGHAUL_ARROWS_graph base tensor io proto)
set(LONGHAUL_ARROWS_ops base data proto graph)
set(LONGHAUL_ARROWS_session base tensor proto graph)
set(LONGHAUL_ARROWS_placement base tensor proto graph session)
set(LONGHAUL_ARROWS_host base tensor io data proto media events graph)
set(LONGHAUL_ARROWS_train/coordination base io)
set(LONGHAUL_ARROWS_train/signals base train/coordination)
set(LONGHAUL_ARROWS_train/journal base io checkpoint/files train/signals)
set(LONGHAUL_ARROWS_train/hangs base events stacks train/journal)
set(LONGHAUL_ARROWS_train/onlookers base io ops session checkpoint/files checkpoint/directory train/coordination
    train/journal)
set(LONGHAUL_ARROWS_train/reporting base io proto events ops session checkpoint/files)
set(LONGHAUL_ARROWS_train/input base proto graph ops session train/coordination)
set(LONGHAUL_ARROWS_train/saved_state base tensor io proto graph ops session checkpoint/files checkpoint/bundle)
set(LONGHAUL_ARROWS_train/saving base io proto graph ops session checkpoint/files checkpoint/bundle checkpoint/directory
    checkpoint/retention train/saved_state)
set(LONGHAUL_ARROWS_train/checkpointing base io events checkpoint/files checkpoint/bundle checkpoint/directory
    checkpoint/retention train/coordination train/signals train/journal train/reporting train/saved_state train/saving)
set(LONGHAUL_ARROWS_train/status base io stacks events status train/coordination train/journal
    train/saving train/checkpointing)
set(LONGHAUL_ARROWS_train/tenure base io proto events status graph checkpoint/files train/coordination train/signals
    train/journal train/reporting train/saving train/checkpointing train/status)
set(LONGHAUL_ARROWS_train/recovery base io checkpoint/files checkpoint/directory train/journal train/saving)
set(LONGHAUL_ARROWS_train/divergence base events graph ops session checkpoint/files train/journal train/recovery)
set(LONGHAUL_ARROWS_train/sessions base io graph ops session checkpoint/files train/coordination train/saved_state
    train/saving train/tenure train/recovery)
set(LONGHAUL_ARROWS_train/hooks base io events ops session checkpoint/files train/coordination train/signals
    train/journal train/hangs train/onlookers train/reporting train/input train/saving train/checkpointing
    train/status train/tenure train/recovery train/divergence train/sessions)
set(LONGHAUL_ARROWS_train/monitored base tensor io proto session train/coordination train/signals train/journal
    train/hangs train/input train/checkpointing train/tenure train/divergence train/sessions train/hooks)
set(LONGHAUL_ARROWS_train/supervisor base io events session checkpoint/files train/coordination train/signals
    train/journal train/hangs train/reporting train/input train/saving train/checkpointing train/status train/tenure
    train/divergence train/sessions)
set(LONGHAUL_ARROWS_runtime base tensor io checkpoint graph session host)
set(LONGHAUL_ARROWS_cluster/spec base proto graph)
set(LONGHAUL_ARROWS_cluster/security base credentials cluster/spec)
set(LONGHAUL_ARROWS_cluster/certificates base io credentials cluster/spec cluster/security)
set(LONGHAUL_ARROWS_cluster/transport base tensor io proto)
set(LONGHAUL_ARROWS_cluster/simulation base cluster/transport)
set(LONGHAUL_ARROWS_cluster/exchange base tensor proto cluster/transport)
set(LONGHAUL_ARROWS_cluster/shards base tensor io proto checkpoint/files checkpoint/bundle cluster/transport)
set(LONGHAUL_ARROWS_cluster/worker base tensor proto graph host session runtime cluster/transport cluster/exchange
    cluster/shards)
set(LONGHAUL_ARROWS_cluster/tasks base proto session placement cluster/transport)
set(LONGHAUL_ARROWS_cluster/master base proto session placement cluster/transport cluster/tasks)
set(LONGHAUL_ARROWS_cluster/wire base tensor proto graph session cluster/transport)
set(LONGHAUL_ARROWS_cluster/server base proto session runtime cluster/spec cluster/transport cluster/worker
    cluster/tasks cluster/master)
set(LONGHAUL_ARROWS_grpc/transport base io proto credentials cluster/security cluster/transport)
set(LONGHAUL_ARROWS_grpc/server base io proto session runtime train/signals cluster/spec cluster/security
    cluster/transport cluster/master cluster/wire cluster/server grpc/transport)
set(LONGHAUL_ARROWS_launch base cluster/spec)
set(LONGHAUL_ARROWS_binding base tensor io data ops session runtime checkpoint/state_dict)
set(LONGHAUL_ARROWS_trainer base graph events ops train runtime binding)
set(LONGHAUL_ARROWS_resume_check base tensor io checkpoint)
set(LONGHAUL_ARROWS_console/text base)
set(LONGHAUL_ARROWS_console/checkpoints base tensor io checkpoint/files checkpoint/bundle checkpoint/directory
    checkpoint/safetensors checkpoint/torch_archive console/text)
set(LONGHAUL_ARROWS_console/trainings base io train/journal console/text console/checkpoints)
set(LONGHAUL_ARROWS_console/restarts base io console/text)
set(LONGHAUL_ARROWS_console/events base io proto events console/text)
set(LONGHAUL_ARROWS_console/board base io proto media events status train/journal train/saved_state console/text
    console/checkpoints console/trainings console/events)
set(LONGHAUL_ARROWS_console/machine base io console/text)
set(LONGHAUL_ARROWS_console/upkeep base io checkpoint/files checkpoint/bundle checkpoint/directory
    checkpoint/safetensors checkpoint/state_dict console/text console/checkpoints)
set(LONGHAUL_ARROWS_testing base io session host)

# Rooms between which there is never an arrow, and whose tests do not see each other either, not by way of a fixture. A
# test of several such rooms stands in none of them: in the folder of the layer, or in a room that they use.
set(LONGHAUL_APART train/monitored train/supervisor)

function(longhaul_check_arrows name)
  foreach(dependency ${ARGN})
    if(NOT dependency IN_LIST LONGHAUL_ARROWS_${name})
      message(FATAL_ERROR "layer ${name} must not depend on ${dependency}; "
                          "it may depend on: ${LONGHAUL_ARROWS_${name}} (cmake/LonghaulLayer.cmake)")
    endif()
  endforeach()
  foreach(dependency ${LONGHAUL_ARROWS_${name}})
    if(NOT dependency IN_LIST ARGN)
      message(FATAL_ERROR "layer ${name} does not name ${dependency} in DEPENDS, to which it has an arrow "
                          "(cmake/LonghaulLayer.cmake)")
    endif()
  endforeach()
endfunction()

# For developers, who build it often: what is not run in each step takes two thirds of its time to build.
set(LONGHAUL_COLD_OPTIONS $<$<AND:$<CONFIG:Release>,$<BOOL:${LONGHAUL_DEVELOPER}>>:-O1>)

# longhaul_group(TARGET): its sources are compiled eight at a time, which takes a third of the time and up to 1.5 GB:
# most of a short file's time goes to headers and templates that its neighbours have, too. So what such files have in
# anonymous namespaces needs names of its own within the target. A source with options of its own stays alone. Not for
# what each step runs: in a larger unit the compiler inlines less.
function(longhaul_group target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LONGHAUL_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# longhaul_precompile(NAME [FOR_TESTS] [COLD] HEADERS header ... [LINK library ...]): these headers, with gmock's
# FOR_TESTS, for targets that say REUSE_FROM NAME; they are compiled with the same options and at least these libraries.
# It links no layer, so that layers can use it.
function(longhaul_precompile name)
  cmake_parse_arguments(ARG "FOR_TESTS;COLD" "" "LINK;HEADERS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${name} SYSTEM PRIVATE ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE fmt::fmt protobuf::libprotobuf ${ARG_LINK} longhaul_flags)
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(ARG_FOR_TESTS)
    target_link_libraries(${name} PRIVATE GTest::gmock)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h>)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE ${LONGHAUL_TEST_OPTIONS})  # as programs are compiled
  endif()
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE ${LONGHAUL_COLD_OPTIONS})
  endif()
  add_dependencies(${name} longhaul_proto)
endfunction()

# longhaul_shared_layer(NAME DEPENDS ... LINK ...): the layer's objects as a shared library that lacks nothing, as
# BUILD_SHARED_LIBS makes them, for a test.
function(longhaul_shared_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND shared_)
  add_library(shared_${name} SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:longhaul_${name}>)
  target_include_directories(shared_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(shared_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LINK})
  if(NOT LONGHAUL_SANITIZE)
    target_link_options(shared_${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

function(longhaul_layer place)
  cmake_parse_arguments(ARG "COLD;GROUPED" "REUSE_FROM"
    "SOURCES;DEPENDS;LINK;LINK_PRIVATE;TESTS;TEST_DEPENDS;TEST_NEEDS;PCH" ${ARGN})
  longhaul_check_arrows(${place} ${ARG_DEPENDS})
  string(REPLACE "/" "_" name ${place})
  string(REPLACE "/" "_" ARG_DEPENDS "${ARG_DEPENDS}")
  add_library(longhaul_${name} ${ARG_SOURCES})  # static, or with BUILD_SHARED_LIBS shared
  add_library(longhaul::${name} ALIAS longhaul_${name})
  set_target_properties(longhaul_${name} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH "${LONGHAUL_INSTALL_RPATH}")
  target_include_directories(longhaul_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:include>)
  target_compile_features(longhaul_${name} PUBLIC cxx_std_20)
  set(dependencies ${ARG_DEPENDS})
  list(TRANSFORM dependencies PREPEND longhaul::)
  target_link_libraries(longhaul_${name} PUBLIC ${dependencies} ${ARG_LINK}
                        PRIVATE ${ARG_LINK_PRIVATE} $<BUILD_INTERFACE:longhaul_flags>)
  set(precompiled precompiled)
  if(ARG_COLD)
    target_compile_options(longhaul_${name} PRIVATE ${LONGHAUL_COLD_OPTIONS})
    set(precompiled precompiled_cold)
  endif()
  if(ARG_COLD OR ARG_GROUPED)
    longhaul_group(longhaul_${name})
  endif()
  if(ARG_PCH)
    target_precompile_headers(longhaul_${name} PRIVATE ${LONGHAUL_COMMON_HEADERS} ${ARG_PCH})
  elseif(ARG_REUSE_FROM)
    target_precompile_headers(longhaul_${name} REUSE_FROM ${ARG_REUSE_FROM})
  elseif(place MATCHES "/" OR proto IN_LIST ARG_DEPENDS OR session IN_LIST ARG_DEPENDS)
    target_precompile_headers(longhaul_${name} REUSE_FROM ${precompiled})
  endif()
  set_property(GLOBAL APPEND PROPERTY LONGHAUL_LAYERS ${place})
  if(LONGHAUL_DEVELOPER)
    longhaul_shared_layer(${name} DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK} ${ARG_LINK_PRIVATE})
  endif()
  if(place MATCHES "/")
    cmake_path(GET place PARENT_PATH layer)
    list(TRANSFORM ARG_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY LONGHAUL_TESTS_OF_${layer} ${ARG_TESTS})
  elseif(LONGHAUL_DEVELOPER AND ARG_TESTS)
    if(ARG_PCH OR ARG_REUSE_FROM)
      set(torch ON_TORCH)
    endif()
    longhaul_test(${name}_test SOURCES ${ARG_TESTS} DEPENDS ${name} ${ARG_TEST_DEPENDS}
      NEEDS ${ARG_TEST_NEEDS} ${torch})
  endif()
endfunction()

# longhaul_sum(NAME layer ...): longhaul::NAME, which has no code of its own and links these.
function(longhaul_sum name)
  add_library(longhaul_${name} INTERFACE)
  add_library(longhaul::${name} ALIAS longhaul_${name})
  set_target_properties(longhaul_${name} PROPERTIES EXPORT_NAME ${name})
  list(TRANSFORM ARGN PREPEND longhaul:: OUTPUT_VARIABLE parts)
  target_link_libraries(longhaul_${name} INTERFACE ${parts})
  set_property(GLOBAL APPEND PROPERTY LONGHAUL_SUMS ${name})
endfunction()

# longhaul_rooms(LAYER ROOMS ... [TESTS ...] [TEST_DEPENDS layer ...] [TEST_NEEDS need ...] [ON_TORCH]): the rooms, in
# folders of the current one; longhaul::LAYER, which is all of them; and LAYER_test, with the tests of each room and
# TESTS of several, ON_TORCH if some of them use libtorch.
function(longhaul_rooms layer)
  cmake_parse_arguments(ARG "ON_TORCH" "" "ROOMS;TESTS;TEST_DEPENDS;TEST_NEEDS" ${ARGN})
  foreach(room ${ARG_ROOMS})
    add_subdirectory(${room})
  endforeach()
  list(TRANSFORM ARG_ROOMS PREPEND ${layer}_)
  longhaul_sum(${layer} ${ARG_ROOMS})
  if(LONGHAUL_DEVELOPER)
    add_library(shared_${layer} INTERFACE)
    list(TRANSFORM ARG_ROOMS PREPEND shared_)
    target_link_libraries(shared_${layer} INTERFACE ${ARG_ROOMS})
    get_property(tests GLOBAL PROPERTY LONGHAUL_TESTS_OF_${layer})
    if(ARG_ON_TORCH)
      set(torch ON_TORCH)
    endif()
    longhaul_test(${layer}_test SOURCES ${ARG_TESTS} ${tests} DEPENDS ${layer} ${ARG_TEST_DEPENDS}
      NEEDS ${ARG_TEST_NEEDS} ${torch})
  endif()
endfunction()
