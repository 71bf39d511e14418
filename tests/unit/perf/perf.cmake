if(TARGET trestle_perf_model)
  trestle_test(NAME perf_test LABEL unit LIBS trestle_perf_model SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/options_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/pattern_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/progress_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/table_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/traffic_test.cpp)
endif()
if(TARGET trestle_perf_train)
  trestle_test(NAME train_step_perf_test LABEL unit LIBS trestle_perf_train SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/train_step_test.cpp)
endif()
if(TARGET trestle_perf_driver AND TRESTLE_WITH_CUDA)
  trestle_test(NAME perf_gpu_test LABEL unit LIBS trestle_perf_driver trestle_device SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_test.cpp)
  target_compile_definitions(perf_gpu_test PRIVATE TRESTLE_FAKE_DRIVER="$<TARGET_FILE:fake_driver>")
  add_dependencies(perf_gpu_test fake_driver)
endif()
