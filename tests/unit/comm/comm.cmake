trestle_test(NAME comm_test LABEL unit LIBS trestle_comm SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/cache_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/calibration_traffic_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/call_check_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_express_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_transport_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_unmade_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_links_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/named_rails_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/notices_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/port_needs_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/routing_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/settings_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/split_parts_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/statistics_test.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/unit/control_mesh/inquiry_test.cpp)
if(NOT TRESTLE_SANITIZE)  # sanitizers have allocation functions of their own
  trestle_test(NAME routing_scale_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/routing_scale_test.cpp)
endif()
if(TRESTLE_WITH_CUDA)
  trestle_test(NAME peer_reach_test LABEL unit LIBS trestle_comm SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/board_store_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_use_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/outbox_memory_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/peer_reach_test.cpp)
  target_include_directories(peer_reach_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(peer_reach_test PRIVATE TRESTLE_FAKE_DRIVER="$<TARGET_FILE:fake_driver>")
  add_dependencies(peer_reach_test fake_driver)
endif()
