trestle_test(NAME sched_test LABEL unit LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/sched_rules_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sched_select_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sched_simulate_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sched_uneven_test.cpp)
