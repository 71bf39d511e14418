trestle_test(NAME gradient_executor_test LABEL unit LIBS trestle_gradient SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/step_machine_test.cpp)
