trestle_test(NAME sched_advice_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/advice_test.cpp)
trestle_test(NAME sched_training_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/training_test.cpp)
trestle_test(NAME cli_design_test LABEL unit LIBS trestle_cli_views SOURCES
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/cli/design_test.cpp)
