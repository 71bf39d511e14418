trestle_test(NAME sim_test LABEL sim SHARDS 4 LIBS trestle_sim trestle_study trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/agreement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chain_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dimensions_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/faults_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rail_request_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rails_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/same_operation_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/steps_model_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/uneven_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/work_test.cpp)
