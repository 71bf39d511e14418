trestle_test(NAME settings_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/settings_test.cpp)
trestle_test(NAME device_links_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/device_links_test.cpp)
