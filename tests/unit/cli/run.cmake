trestle_test(NAME cli_run_test LABEL unit LIBS trestle_cli_run SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/run_binding_test.cpp)
