trestle_test(NAME sched_calibration_test LABEL unit LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/calibration_test.cpp)
trestle_test(NAME calibration_file_test LABEL unit LIBS trestle_topology SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/calibration_file_test.cpp)
target_compile_definitions(calibration_file_test PRIVATE TRESTLE_TOPOLOGY_FILES=$<BOOL:${nlohmann_json_FOUND}>)
