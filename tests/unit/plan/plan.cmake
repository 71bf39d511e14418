trestle_test(NAME plan_test LABEL unit LIBS trestle_plan SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/builder_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/checker_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/message_rows_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/value_test.cpp)
