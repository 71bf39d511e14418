trestle_test(NAME sim_themis_engine_test LABEL sim LIBS trestle_sim trestle_sched SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/themis_engine_test.cpp)
