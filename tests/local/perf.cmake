if(TARGET trestle_perf)
  add_test(NAME perf_binaries_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/perf_test.sh $<TARGET_FILE_DIR:all_reduce_perf>)
  add_test(NAME perf_flags_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/perf_flags_test.sh $<TARGET_FILE_DIR:all_reduce_perf>)
  if(TARGET train_step_perf)
    add_test(NAME train_step_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/train_step_test.sh $<TARGET_FILE_DIR:all_reduce_perf>)
    list(APPEND perf_shell_tests train_step_test)
  endif()
  set_tests_properties(perf_binaries_test perf_flags_test ${perf_shell_tests} PROPERTIES LABELS local TIMEOUT 300
                       ENVIRONMENT "${test_environment}")
endif()
if(TARGET trestle_perf AND TARGET trestle_nccl)
  set(devices)
  if(TRESTLE_WITH_CUDA) # the driver is a test of src/device
    add_library(foreign_nccl SHARED ${CMAKE_CURRENT_LIST_DIR}/perf_nccl/foreign_nccl.cpp ${PROJECT_SOURCE_DIR}/perf/backend/nccl_library.cpp)
    target_include_directories(foreign_nccl PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(foreign_nccl PRIVATE ${CMAKE_DL_LIBS})
    set(devices $<TARGET_FILE:foreign_nccl> $<TARGET_FILE:fake_driver>)
  endif()
  add_test(NAME perf_nccl_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/perf_nccl/perf_nccl_test.sh $<TARGET_FILE_DIR:all_reduce_perf>
                                       $<TARGET_FILE:trestle_nccl> ${devices})
  set_tests_properties(perf_nccl_test PROPERTIES LABELS local TIMEOUT 600
                       ENVIRONMENT "${test_environment}")
endif()
if(TARGET trestle_perf AND TRESTLE_WITH_CUDA)
  add_test(NAME perf_device_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/perf_device_test.sh $<TARGET_FILE_DIR:all_reduce_perf>
                                         $<TARGET_FILE:fake_driver>)
  set_tests_properties(perf_device_test PROPERTIES LABELS local TIMEOUT 600
                       ENVIRONMENT "${test_environment}")
endif()
