trestle_test(NAME topology_test LABEL unit LIBS trestle_topology SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/device_topology_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/known_rates_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_choose_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_file_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/topology_test.cpp)
target_compile_definitions(topology_test PRIVATE TRESTLE_TOPOLOGY_FILES=$<BOOL:${nlohmann_json_FOUND}>)
