# Processes as ranks, through the public header only. They must prove that they belong to the job.
if(TARGET trestle AND SODIUM_FOUND)
  add_library(trestle_api_sockets STATIC ${CMAKE_CURRENT_LIST_DIR}/api_sockets.cpp)
  target_include_directories(trestle_api_sockets PUBLIC ${CMAKE_SOURCE_DIR}/tests)
  trestle_test(NAME api_processes_test LABEL local LIBS trestle_api_calls trestle_api_sockets SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_processes_test.cpp)
  trestle_test(NAME api_bad_input_test LABEL local LIBS trestle_api_calls trestle_api_sockets SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_bad_blocks_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_bad_calls_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_bad_config_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_config_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_strangers_test.cpp)
  trestle_test(NAME api_usage_test LABEL local LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_handles_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_open_group_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_overlap_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_split_usage_test.cpp)
  trestle_test(NAME api_config_test LABEL local LIBS trestle_api_calls trestle_api_sockets SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_config_effects_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_config_file_test.cpp)
  trestle_test(NAME api_failure_test LABEL local LIBS trestle_api_calls TIMEOUT 600 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/api_deadline_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_disagreement_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_event_failure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_kill_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_sizes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_user_function_test.cpp)
  trestle_test(NAME api_blame_test LABEL local LIBS trestle_api_calls trestle_api_sockets TIMEOUT 900 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/ending.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_blame_join_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_blame_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/api_blame_test.cpp)
endif()
