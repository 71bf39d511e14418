trestle_test(NAME host_shares_test LABEL unit LIBS trestle_engine SOURCES ${CMAKE_CURRENT_LIST_DIR}/host_shares_test.cpp)
trestle_test(NAME engine_test LABEL unit LIBS trestle_engine trestle_sim SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/bounces_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/delayed_work_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/disagreement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/failure_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layout_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/long_copy_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/long_wait_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/prepared_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/regrouping_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/outer_stream_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/runs_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/stream_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/patience_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/stream_failure_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/progress_places_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/progress_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/progress_threads_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/turns_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/work_test.cpp
  ${PROJECT_SOURCE_DIR}/tests/support/delayed_queue.cpp)
if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
  trestle_test(NAME engine_issue_test LABEL unit LIBS trestle_engine trestle_sim SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/issue_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/stream_memory_test.cpp
    ${PROJECT_SOURCE_DIR}/tests/support/allocations.cpp)
endif()
