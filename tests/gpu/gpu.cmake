# Tests that need a GPU: scripts/gpu_check runs them. Without one each says so and passes.
if(TRESTLE_WITH_CUDA)
  trestle_test(NAME gpu_kernels_test LABEL gpu TIMEOUT 240 LIBS trestle_device trestle_kernels SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_kernels_test.cpp)
  trestle_test(NAME gpu_board_test LABEL gpu TIMEOUT 60 LIBS trestle_device trestle_kernels SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_board_test.cpp)
  trestle_test(NAME gpu_device_test LABEL gpu TIMEOUT 60 LIBS trestle_device SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_device_test.cpp)
  trestle_test(NAME gpu_queue_test LABEL gpu TIMEOUT 120 LIBS trestle_engine SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_queue_test.cpp)
  foreach(name gpu_kernels_test gpu_board_test)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)  # support/elements.h
  endforeach()
  set(gpu_programs gpu_kernels_test gpu_board_test gpu_device_test gpu_queue_test)
  if(TARGET trestle)
    # A part for each case: one that the driver never ends leaves the others their result.
    trestle_test(NAME gpu_streams_test LABEL gpu TIMEOUT 60 SHARDS 11 LIBS trestle trestle_device SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/gpu_streams_test.cpp)
    # The conformance tests of the public API on memory of the first GPU. What is skipped everywhere is not asked for: on
    # a machine with a GPU, a test that says "skipped" has failed.
    add_executable(on_gpu ${CMAKE_CURRENT_LIST_DIR}/on_gpu.cpp)
    target_include_directories(on_gpu PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(on_gpu PRIVATE trestle_device)
    foreach(name api_collectives api_vectors api_persistent)
      trestle_test_run(NAME ${name}_gpu_test OF on_gpu LABEL gpu TIMEOUT 900
                       ARGS $<TARGET_FILE:${name}_test> --gtest_filter=-*.FullProduct
                       ENVIRONMENT RANKS_TRESTLE_DEVICE=0)
      list(APPEND gpu_programs ${name}_test)
    endforeach()
    list(APPEND gpu_programs gpu_streams_test on_gpu)
  endif()
  add_custom_target(gpu_tests DEPENDS ${gpu_programs}) # all of them, for scripts/gpu_check
endif()
