if(TARGET trestle_cli_views)
  trestle_test(NAME cli_views_test LABEL unit LIBS trestle_cli_views SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/sim_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/study_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/topo_test.cpp)
  trestle_test(NAME cli_train_test LABEL unit LIBS trestle_cli_views SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/choose_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/design_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/presets_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/scale_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/step_lanes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/train_link_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/train_loss_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/train_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/train_topk_test.cpp)
  # Each reads the header of nlohmann-json once.
  set_target_properties(cli_views_test cli_train_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
