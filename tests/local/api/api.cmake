# Ranks as processes, through the public header only. The processes must prove that they belong to the job.
if(TARGET trestle AND SODIUM_FOUND)
  add_library(trestle_api_sockets STATIC ${CMAKE_CURRENT_LIST_DIR}/sockets.cpp)
  target_include_directories(trestle_api_sockets PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  trestle_test(NAME api_processes_test LABEL local LIBS trestle_api_calls trestle_api_sockets SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/processes_test.cpp)
  trestle_test(NAME api_bad_input_test LABEL local LIBS trestle_api_calls trestle_api_sockets SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/bad_calls_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bad_collectives_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bad_config_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/config_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/strangers_test.cpp)
  trestle_test(NAME api_usage_test LABEL local LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/handles_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/open_group_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/overlap_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/split_usage_test.cpp)
  trestle_test(NAME api_progress_threads_test LABEL local LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/progress_threads_test.cpp)
  trestle_test(NAME api_config_test LABEL local LIBS trestle_api_calls trestle_api_sockets SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/config_effects_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/config_file_test.cpp)
  trestle_test(NAME api_two_jobs_test LABEL local LIBS trestle_api_calls trestle_api_sockets TIMEOUT 600 SHARDS 3 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/ending.cpp
    ${CMAKE_CURRENT_LIST_DIR}/two_jobs_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/waiting_test.cpp)
  trestle_test(NAME api_failure_test LABEL local LIBS trestle_api_calls TIMEOUT 1800 SHARDS 3 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/deadline_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/disagreement_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/event_failure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sizes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/user_function_test.cpp)
  trestle_test(NAME api_blame_test LABEL local LIBS trestle_api_calls trestle_api_sockets TIMEOUT 3600 SHARDS 3 SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/ending.cpp
    ${CMAKE_CURRENT_LIST_DIR}/blame_join_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/blame_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/blame_test.cpp)
endif()
