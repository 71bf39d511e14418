trestle_test(NAME settings_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/settings_test.cpp)
