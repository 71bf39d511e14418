trestle_test(NAME engine_test LABEL unit LIBS trestle_engine trestle_sim SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/engine_disagreement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_express_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_layout_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_prepared_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_regrouping_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_stream_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/patience_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine_stream_failure_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/progress_test.cpp)
