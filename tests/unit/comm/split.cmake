trestle_test(NAME comm_split_parts_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/split_parts_test.cpp)
