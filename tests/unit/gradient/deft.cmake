trestle_test(NAME gradient_deft_test LABEL unit LIBS trestle_gradient SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/deft_partition_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/deft_queues_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/deft_select_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/deft_simulate_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/preserver_test.cpp)
