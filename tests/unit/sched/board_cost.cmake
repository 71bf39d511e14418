trestle_test(NAME board_cost_test LABEL unit LIBS trestle_sched SOURCES ${CMAKE_CURRENT_LIST_DIR}/board_cost_test.cpp)
