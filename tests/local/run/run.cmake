# `trestle run` as its users see it.
if(TARGET trestle_cli)
  trestle_test(NAME run_test LABEL local LIBS trestle_cli_run SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/local/command.cpp
    ${CMAKE_CURRENT_LIST_DIR}/binding_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/ends_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/families_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/options_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/output_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/parts.cpp
    ${CMAKE_CURRENT_LIST_DIR}/run_test.cpp)
  target_compile_definitions(run_test PRIVATE TRESTLE_COMMAND="$<TARGET_FILE:trestle_cli>")
  set_tests_properties(run_test PROPERTIES RUN_SERIAL ON) # cores are claimed on the whole machine
  add_dependencies(run_test trestle_cli)
endif()
if(TARGET trestle_cli AND TARGET trestle_perf AND SODIUM_FOUND)
  trestle_test(NAME run_real_test LABEL local LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/local/command.cpp
    ${CMAKE_CURRENT_LIST_DIR}/real_test.cpp)
  target_compile_definitions(run_real_test PRIVATE TRESTLE_COMMAND="$<TARGET_FILE:trestle_cli>"
                                                   TRESTLE_PERF_BINARY="$<TARGET_FILE:all_reduce_perf>")
  add_dependencies(run_real_test trestle_cli all_reduce_perf)
endif()
