trestle_test(NAME sched_auto_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/auto_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exhaustive_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lp_split_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/second_level_test.cpp)
