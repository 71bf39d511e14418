trestle_test(NAME memory_test LABEL unit LIBS trestle_memory SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/claims_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/outbox_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/region_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/staging_test.cpp)
