trestle_test(NAME sched_advice_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/advice_test.cpp)
trestle_test(NAME sched_training_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/training_test.cpp)
