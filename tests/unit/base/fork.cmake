trestle_test(NAME base_fork_test LABEL unit LIBS trestle_base SOURCES ${CMAKE_CURRENT_LIST_DIR}/fork_test.cpp)
