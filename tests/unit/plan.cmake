trestle_test(NAME plan_test LABEL unit LIBS trestle_plan SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/plan_builder_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan_checker_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan_value_test.cpp)
