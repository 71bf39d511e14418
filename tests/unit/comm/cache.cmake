trestle_test(NAME comm_cache_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/cache_test.cpp)
