trestle_test(NAME machine_test LABEL unit LIBS trestle_machine SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/layout_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/machine_test.cpp)
