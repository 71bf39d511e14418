trestle_test(NAME base_test LABEL unit LIBS trestle_base SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/base_config_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/base_config_sources_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/base_log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/base_rank_names_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/base_values_test.cpp)
