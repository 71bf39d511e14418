trestle_test(NAME inquiry_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/inquiry_test.cpp)
