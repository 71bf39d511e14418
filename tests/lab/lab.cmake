# Shaped links in network namespaces. These tests need root and kernel support; otherwise they are skipped with a
# sentence.
if(TARGET trestle_cli AND TARGET all_reduce_perf)
  add_test(NAME lab_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/lab/lab_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(lab_test PROPERTIES LABELS lab TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_test(NAME lost_host_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/lab/lost_host_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(lost_host_test PROPERTIES LABELS lab TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_test(NAME rail_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/lab/rail_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(rail_test PROPERTIES LABELS lab TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_test(NAME control_rails_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/lab/control_rails_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(control_rails_test PROPERTIES LABELS lab TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_test(NAME rails_job_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/lab/rails_job_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(rails_job_test PROPERTIES LABELS lab TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
