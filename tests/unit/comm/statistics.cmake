trestle_test(NAME statistics_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/statistics_test.cpp)
