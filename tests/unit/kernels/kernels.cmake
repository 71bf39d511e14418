if(TRESTLE_SIMD_KERNELS)
  set(kernel_loop_sets ${CMAKE_CURRENT_LIST_DIR}/kernel_loop_sets_simd.cpp)
  set(kernel_loop_libraries PkgConfig::HWY)
else()
  set(kernel_loop_sets ${CMAKE_CURRENT_LIST_DIR}/kernel_loop_sets_portable.cpp)
  set(kernel_loop_libraries)
endif()
trestle_test(NAME kernels_test LABEL unit LIBS trestle_kernels ${kernel_loop_libraries} SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/kernels_convert_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_reduce_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_scale_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_sparse_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_sparse_types_test.cpp
  ${kernel_loop_sets})
target_include_directories(kernels_test PRIVATE ${PROJECT_SOURCE_DIR}/include)  # support/elements.h
# Instruction sets, as in kernels/CMakeLists.txt.
target_compile_definitions(kernels_test PRIVATE HWY_DISABLED_TARGETS=HWY_SSSE3)
