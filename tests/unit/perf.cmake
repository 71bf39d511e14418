if(TARGET trestle_perf_model)
  trestle_test(NAME perf_test LABEL unit LIBS trestle_perf_model SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/perf_options_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/perf_pattern_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/perf_progress_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/perf_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/perf_table_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/perf_traffic_test.cpp)
endif()
