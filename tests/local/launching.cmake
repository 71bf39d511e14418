# The commands of docs/launching.md, each under its launcher if that is installed.
if(TARGET trestle AND TARGET trestle_cli AND SODIUM_FOUND)
  # ThreadSanitizer cannot check the libraries of the launchers.
  set(cases alone kubernetes mpich)
  if(NOT TRESTLE_SANITIZE MATCHES thread)
    list(APPEND cases openmpi slurm)
  endif()
  foreach(case IN LISTS cases)
    add_test(NAME launching_${case}_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/launching_test.sh ${case}
      ${PROJECT_SOURCE_DIR} $<TARGET_FILE_DIR:trestle> ${CMAKE_C_COMPILER} "${TRESTLE_SANITIZE}")
    # detect_leaks=0: PMIx never frees its memory.
    set_tests_properties(launching_${case}_test PROPERTIES LABELS local TIMEOUT 300 SKIP_RETURN_CODE 77
      ENVIRONMENT "${test_environment};ASAN_OPTIONS=detect_leaks=0")
  endforeach()
endif()
