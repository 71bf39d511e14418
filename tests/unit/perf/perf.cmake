if(TARGET trestle_perf_model)
  trestle_test(NAME perf_test LABEL unit LIBS trestle_perf_model SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/options_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/pattern_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/progress_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/table_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/traffic_test.cpp)
endif()
