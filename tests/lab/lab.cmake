# Shaped links in network namespaces. These tests need root and kernel support; otherwise they are skipped with a
# sentence. Labs have no names, so several may run at the same time.
if(TARGET trestle_cli AND TARGET all_reduce_perf)
  foreach(program split_ranks sum_once)
    add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.c)
    target_link_libraries(${program} PRIVATE trestle)
    if(TRESTLE_SANITIZE)
      # The library needs the sanitizers' runtime for C++.
      set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
  endforeach()
  foreach(name lab_test lost_host_test rail_test ipv6_rails_test port_range_test control_rails_test rails_job_test
          addresses_test one_host_test cuts_test goodput_plot_test train_step_lab_test)
    add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_LIST_DIR}/${name}.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES LABELS lab TIMEOUT 300 COST 900 SKIP_RETURN_CODE 77
                                            ENVIRONMENT "${test_environment}")
  endforeach()
  set_tests_properties(addresses_test PROPERTIES TIMEOUT 900) # 30 jobs, 10 of them by mpirun
  set_tests_properties(cuts_test PROPERTIES TIMEOUT 1800) # LAB_CUTS=100 takes some minutes
  set_tests_properties(lost_host_test PROPERTIES RUN_SERIAL ON) # its heartbeat is half a second
endif()
