trestle_test(NAME sched_test LABEL unit LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/converging_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_selection_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/few_sources_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/select_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/simulate_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/uneven_test.cpp)
