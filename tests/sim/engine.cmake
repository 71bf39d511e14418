trestle_test(NAME sim_engine_test LABEL sim SOURCES ${CMAKE_CURRENT_LIST_DIR}/same_operation_test.cpp ${CMAKE_CURRENT_LIST_DIR}/engine_test.cpp ${CMAKE_CURRENT_LIST_DIR}/work_test.cpp ${CMAKE_CURRENT_LIST_DIR}/uneven_test.cpp LIBS trestle_sim trestle_sched)
trestle_test(NAME sim_dimensions_test LABEL sim SOURCES ${CMAKE_CURRENT_LIST_DIR}/dimensions_test.cpp LIBS trestle_sim trestle_sched)
trestle_test(NAME sim_rails_test LABEL sim SOURCES ${CMAKE_CURRENT_LIST_DIR}/rails_test.cpp ${CMAKE_CURRENT_LIST_DIR}/rail_request_test.cpp LIBS trestle_sim trestle_sched)
