trestle_test(NAME themis_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/themis_invariants_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/themis_vectors_test.cpp)
