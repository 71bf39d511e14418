# Tests that need a GPU: scripts/gpu_check runs them. Without one each says so and passes.
if(TRESTLE_WITH_CUDA)
  trestle_test(NAME gpu_kernels_test LABEL gpu TIMEOUT 240 LIBS trestle_device trestle_kernels SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_kernels_test.cpp)
  trestle_test(NAME gpu_device_test LABEL gpu TIMEOUT 60 LIBS trestle_device SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_device_test.cpp)
  trestle_test(NAME gpu_queue_test LABEL gpu TIMEOUT 120 LIBS trestle_engine SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/gpu_queue_test.cpp)
  if(TARGET trestle)
    trestle_test(NAME gpu_streams_test LABEL gpu TIMEOUT 60 LIBS trestle trestle_device SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/gpu_streams_test.cpp)
  endif()
endif()
