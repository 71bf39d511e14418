trestle_test(NAME algorithms_test LABEL unit LIBS trestle_algorithms SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/algorithms_bits_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/algorithms_catalog_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/algorithms_conformance_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/algorithms_cost_test.cpp)
