# libnccl.so.2 over Trestle (src/bindings/nccl), on host memory. The tests include <nccl.h>: that of own/, and once more that of NCCL
# where it is installed, with what it includes of CUDA.
if(TARGET trestle_nccl AND SODIUM_FOUND)
  include(CheckCXXSourceCompiles)
  find_path(TRESTLE_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda/include)
  mark_as_advanced(TRESTLE_NCCL_INCLUDE)
  if(TRESTLE_NCCL_INCLUDE)
    set(CMAKE_REQUIRED_INCLUDES ${TRESTLE_NCCL_INCLUDE})
    check_cxx_source_compiles("#include <nccl.h>
      static_assert(NCCL_VERSION_CODE >= 22800);
      int main() { return 0; }" TRESTLE_NCCL_HEADER)
    unset(CMAKE_REQUIRED_INCLUDES)
  endif()

  # A library path of the user's environment may lead to NCCL itself: the tests' own path comes first.
  add_library(trestle_nccl_tests INTERFACE)
  target_link_libraries(trestle_nccl_tests INTERFACE trestle_nccl)
  target_link_options(trestle_nccl_tests INTERFACE -Wl,--disable-new-dtags)
  add_library(trestle_own_nccl_header INTERFACE)
  target_include_directories(trestle_own_nccl_header INTERFACE ${CMAKE_CURRENT_LIST_DIR}/own)
  set(headers own)
  if(TRESTLE_NCCL_HEADER)
    add_library(trestle_installed_nccl_header INTERFACE)
    target_include_directories(trestle_installed_nccl_header SYSTEM INTERFACE ${TRESTLE_NCCL_INCLUDE})
    list(APPEND headers installed)
  endif()

  foreach(header IN LISTS headers)
    set(suffix test)
    if(header STREQUAL installed)
      set(suffix installed_header_test)
    endif()
    trestle_test(NAME nccl_${suffix} LABEL local TIMEOUT 600
      LIBS trestle_nccl_tests trestle_${header}_nccl_header trestle_api_calls ${CMAKE_DL_LIBS} SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/life_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/nccl_ranks.cpp
      ${CMAKE_CURRENT_LIST_DIR}/refusals_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/values_test.cpp)
    add_executable(nccl_program_${suffix} ${CMAKE_CURRENT_LIST_DIR}/program.c)
    set_target_properties(nccl_program_${suffix} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
    target_link_libraries(nccl_program_${suffix} PRIVATE trestle_nccl_tests trestle_${header}_nccl_header)
    if(TRESTLE_SANITIZE)
      # The library needs the sanitizers' runtime for C++.
      set_target_properties(nccl_program_${suffix} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
    trestle_test_run(NAME nccl_program_${suffix} OF nccl_program_${suffix} LABEL local TIMEOUT 120)
  endforeach()
  # On the fake driver of tests/local/cuda, which is libcuda.so.1 here.
  if(TRESTLE_WITH_CUDA)
    trestle_test(NAME nccl_device_test LABEL local TIMEOUT 600
      LIBS trestle_nccl_tests trestle_own_nccl_header trestle_api_calls trestle_device fake_cuda SOURCES
      ${PROJECT_SOURCE_DIR}/tests/local/cuda/fake_gpu.cpp
      ${CMAKE_CURRENT_LIST_DIR}/device_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/nccl_ranks.cpp)
  endif()
  if(TRESTLE_NCCL_HEADER)
    trestle_test(NAME nccl_layout_test LABEL unit LIBS trestle_installed_nccl_header SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/layout_test.cpp)
    target_include_directories(nccl_layout_test PRIVATE ${PROJECT_SOURCE_DIR}/include)
  endif()

  if(NOT TRESTLE_SANITIZE AND NOT TRESTLE_COVERAGE)
    find_file(TRESTLE_NCCL_LIBRARY libnccl.so.2 PATHS /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu)
    mark_as_advanced(TRESTLE_NCCL_LIBRARY)
    set(other)
    if(TRESTLE_NCCL_LIBRARY)
      set(other ${TRESTLE_NCCL_LIBRARY})
    endif()
    add_test(NAME nccl_exports_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/exports_test.sh
      $<TARGET_FILE:trestle_nccl> ${CMAKE_CURRENT_LIST_DIR}/symbols.txt ${other})
    set_tests_properties(nccl_exports_test PROPERTIES LABELS local TIMEOUT 120)
    add_executable(nccl_every_symbol ${CMAKE_CURRENT_LIST_DIR}/every_symbol.c)
    target_link_libraries(nccl_every_symbol PRIVATE ${CMAKE_DL_LIBS})
    add_test(NAME nccl_every_symbol_test COMMAND nccl_every_symbol $<TARGET_FILE:trestle_nccl> ${CMAKE_CURRENT_LIST_DIR}/symbols.txt)
    set_tests_properties(nccl_every_symbol_test PROPERTIES LABELS local TIMEOUT 60)
  endif()
endif()
