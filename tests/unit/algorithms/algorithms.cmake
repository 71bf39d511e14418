trestle_test(NAME algorithms_test LABEL unit LIBS trestle_algorithms SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/bits_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/catalog_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conformance_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cost_test.cpp)
