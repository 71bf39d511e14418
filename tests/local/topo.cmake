if(TARGET trestle_cli AND SODIUM_FOUND)
  trestle_test(NAME topo_test LABEL local SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/command.cpp
    ${CMAKE_CURRENT_LIST_DIR}/topo_test.cpp)
  target_compile_definitions(topo_test PRIVATE TRESTLE_COMMAND="$<TARGET_FILE:trestle_cli>"
                                               TRESTLE_FAKE_NVML_FOLDER="$<TARGET_FILE_DIR:fake_nvml>")
  add_dependencies(topo_test trestle_cli fake_nvml)
endif()
