trestle_test(NAME tidy_test LABEL unit SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/circles_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/class_sizes_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/collectives_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/line_count_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/links_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/named_things_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/one_definition_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tidy_source.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tidy_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/words_test.cpp)
