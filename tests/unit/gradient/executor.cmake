trestle_test(NAME gradient_executor_test LABEL unit LIBS trestle_gradient_executor trestle SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/bell_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/copies_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/delayed_machine_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/delayed_memory_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/executor_parts_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/job_flag_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/link_meeting_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step_board_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step_machine_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_test.cpp)
target_include_directories(gradient_executor_test PRIVATE ${PROJECT_SOURCE_DIR}/include)
