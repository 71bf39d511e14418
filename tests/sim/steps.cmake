trestle_test(NAME sim_steps_model_test LABEL sim LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/steps_model_test.cpp)
