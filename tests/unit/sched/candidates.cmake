trestle_test(NAME sched_candidates_test LABEL unit LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/candidates_test.cpp)
