trestle_test(NAME launch_plan_test LABEL unit LIBS trestle_kernels_cuda SOURCES ${CMAKE_CURRENT_LIST_DIR}/launch_plan_test.cpp)
if(TRESTLE_WITH_CUDA)
  # In place of libcuda.so.1: see fake_driver.h.
  add_library(fake_driver_objects OBJECT
    ${CMAKE_CURRENT_LIST_DIR}/fake_driver.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_board.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_described.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_entries.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_kernels.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_shared_memory.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_graphs.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_streams.cpp)
  target_include_directories(fake_driver_objects PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_include_directories(fake_driver_objects SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(fake_driver_objects PRIVATE trestle_kernels trestle_kernels_cuda)
  add_library(fake_driver SHARED $<TARGET_OBJECTS:fake_driver_objects>)
  target_link_libraries(fake_driver PRIVATE trestle_kernels trestle_kernels_cuda Threads::Threads)
  trestle_test(NAME device_test LABEL unit LIBS trestle_device trestle_kernels SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/copy_batch_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/described_memory_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_kernels_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gate_test.cpp)
  target_include_directories(device_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(device_test PRIVATE TRESTLE_FAKE_DRIVER="$<TARGET_FILE:fake_driver>")
  add_dependencies(device_test fake_driver)
  trestle_test(NAME device_queue_test LABEL unit LIBS trestle_engine SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/device_queue_failure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_queue_lanes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_queue_test.cpp)
  target_include_directories(device_queue_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(device_queue_test PRIVATE TRESTLE_FAKE_DRIVER="$<TARGET_FILE:fake_driver>")
  add_dependencies(device_queue_test fake_driver)
  trestle_test(NAME device_board_test LABEL unit LIBS trestle_engine SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/device_board_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_board_test.cpp)
  target_include_directories(device_board_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(device_board_test PRIVATE TRESTLE_FAKE_DRIVER="$<TARGET_FILE:fake_driver>")
  add_dependencies(device_board_test fake_driver)
else()
  trestle_test(NAME device_test LABEL unit LIBS trestle_device SOURCES ${CMAKE_CURRENT_LIST_DIR}/not_built_test.cpp)
endif()
