trestle_test(NAME call_check_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/call_check_test.cpp)
