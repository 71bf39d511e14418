# Streams and memory of devices through the public header.
if(TARGET trestle AND TRESTLE_WITH_CUDA)
  # The fake driver by the name of the driver, which the library loads: it finds the one that the test is linked with.
  add_library(fake_cuda SHARED $<TARGET_OBJECTS:fake_driver_objects>)
  set_target_properties(fake_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                                             LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_cuda)
  target_link_libraries(fake_cuda PRIVATE trestle_kernels trestle_kernels_cuda Threads::Threads)
  trestle_test(NAME api_cuda_test LABEL local LIBS trestle_api_calls trestle_device fake_cuda SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cuda_board_processes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_board_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_failures_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_gradients_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_graphs_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_memory_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_peers_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_processes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_ranks_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_staging_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_two_paths_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_gpu.cpp)
elseif(TARGET trestle)
  trestle_test(NAME api_cuda_test LABEL local LIBS trestle_api_calls SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/no_cuda_test.cpp)
endif()
