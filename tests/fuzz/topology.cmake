# Texts written by users: topology and workload files, dimensions, rules for algorithms, environment variables.
if(nlohmann_json_FOUND)
  trestle_fuzz(NAME topology_fuzz RUNS 10000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/topology_fuzz.cpp LIBS trestle_topology)
  # The rest of the command would bring the engine and the simulator along, half of what the preset fuzz compiles.
  trestle_fuzz(NAME training_fuzz RUNS 5000 LIBS trestle_gradient trestle_topology
               SOURCES ${CMAKE_CURRENT_LIST_DIR}/training_fuzz.cpp ${PROJECT_SOURCE_DIR}/src/cli/train/workload_file.cpp)
endif()
trestle_fuzz(NAME dims_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/dims_fuzz.cpp LIBS trestle_topology)
trestle_fuzz(NAME algo_rules_fuzz RUNS 5000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/algo_rules_fuzz.cpp LIBS trestle_sched)
trestle_fuzz(NAME config_fuzz RUNS 5000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/config_fuzz.cpp LIBS trestle_base)
