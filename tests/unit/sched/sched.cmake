trestle_test(NAME sched_test LABEL unit SHARDS 3 LIBS trestle_study trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/auto_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/board_cost_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/calibration_file_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/calibration_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/candidates_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/converging_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_selection_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exhaustive_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/few_sources_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lp_split_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/second_level_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/select_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/simulate_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/themis_invariants_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/themis_vectors_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/uneven_test.cpp)
target_compile_definitions(sched_test PRIVATE TRESTLE_TOPOLOGY_FILES=$<BOOL:${nlohmann_json_FOUND}>)
