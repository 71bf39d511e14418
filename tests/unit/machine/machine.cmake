trestle_test(NAME machine_test LABEL unit LIBS trestle_machine SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/gpu_hints_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layout_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/machine_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/nearest_test.cpp)
target_compile_definitions(machine_test PRIVATE TRESTLE_HWLOC_BUILT=$<BOOL:${HWLOC_FOUND}>)
