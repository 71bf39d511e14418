trestle_test(NAME sched_auto_test LABEL unit LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/sched_auto_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sched_exhaustive_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sched_lp_split_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sched_second_level_test.cpp)
