if(TARGET trestle_cli AND SODIUM_FOUND AND nlohmann_json_FOUND)
  trestle_test(NAME calibration_test LABEL local LIBS trestle_api_calls trestle_topology SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/calibration_test.cpp)
  target_compile_definitions(calibration_test PRIVATE TRESTLE_COMMAND="$<TARGET_FILE:trestle_cli>")
  add_dependencies(calibration_test trestle_cli)
  add_test(NAME user_cache_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/user_cache_test.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(user_cache_test PROPERTIES LABELS local TIMEOUT 300)
endif()
