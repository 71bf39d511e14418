if(TARGET trestle_perf)
  add_test(NAME perf_binaries_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/perf_test.sh $<TARGET_FILE_DIR:all_reduce_perf>)
  add_test(NAME perf_flags_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/perf_flags_test.sh $<TARGET_FILE_DIR:all_reduce_perf>)
  add_test(NAME train_step_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/train_step_test.sh $<TARGET_FILE_DIR:all_reduce_perf>)
  set_tests_properties(perf_binaries_test perf_flags_test train_step_test PROPERTIES LABELS local TIMEOUT 300
                       ENVIRONMENT "TRESTLE_CALIBRATE=off;TRESTLE_CONF_FILE=/dev/null")
endif()
