trestle_test(NAME gradient_planners_test LABEL unit LIBS trestle_gradient SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/networks_test.cpp)
