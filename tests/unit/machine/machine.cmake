# In place of libnvidia-ml.so.1, and with its name for programs that look for it: see fake_nvml.h.
add_library(fake_nvml SHARED ${CMAKE_CURRENT_LIST_DIR}/fake_nvml.cpp)
target_include_directories(fake_nvml PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
set_target_properties(fake_nvml PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1
                                           LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fake_nvml)
add_library(broken_nvml SHARED ${CMAKE_CURRENT_LIST_DIR}/broken_nvml.cpp)
trestle_test(NAME machine_test LABEL unit LIBS trestle_machine SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/gpu_files_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_hints_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layout_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/machine_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/nearest_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/nvml_test.cpp)
target_compile_definitions(machine_test PRIVATE TRESTLE_FAKE_NVML="$<TARGET_FILE:fake_nvml>"
                                                TRESTLE_BROKEN_NVML="$<TARGET_FILE:broken_nvml>"
                                                TRESTLE_HWLOC_BUILT=$<BOOL:${HWLOC_FOUND}>)
add_dependencies(machine_test fake_nvml broken_nvml)
