trestle_test(NAME study_test LABEL unit LIBS trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/advice_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/training_test.cpp)
