trestle_test(NAME communicator_test LABEL unit LIBS trestle_comm SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/communicator_express_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_transport_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/communicator_unmade_test.cpp)
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
trestle_test(NAME descriptor_post_test LABEL unit LIBS trestle_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/descriptor_post_test.cpp)
