trestle_test(NAME wiring_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/wiring_test.cpp)
