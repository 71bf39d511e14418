trestle_test(NAME base_fork_test LABEL unit LIBS trestle_base SOURCES ${CMAKE_CURRENT_LIST_DIR}/base_fork_test.cpp)
