trestle_test(NAME sim_steps_model_test LABEL sim LIBS trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/steps_model_test.cpp)
trestle_test(NAME sim_agreement_test LABEL sim LIBS trestle_sim trestle_study SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/agreement_test.cpp)
trestle_test(NAME sim_faults_test LABEL sim LIBS trestle_sim trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/faults_test.cpp)
trestle_test(NAME sim_chain_test LABEL sim LIBS trestle_sim trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/chain_test.cpp)
