if(TARGET trestle_cli)
  trestle_test(NAME cli_test LABEL local SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cli_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/command.cpp)
  target_compile_definitions(cli_test PRIVATE TRESTLE_COMMAND="$<TARGET_FILE:trestle_cli>")
  add_dependencies(cli_test trestle_cli)
endif()
