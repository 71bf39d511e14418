# Follows docs/extending.md: patches add an algorithm and a transport to copies of their folders. trestle_extending(NAME
# PATCH MOST TEST FILTER LIBRARIES...): the patch touches at most MOST existing files, and the cases FILTER pass with
# the objects of the test executable TEST.
function(trestle_extending name change most test filter)
  set(flags ${CMAKE_CXX_COMPILER} -std=gnu++20 -O1 -fPIC -Wall -Wextra -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND flags -Wno-restrict)  # as in the whole build
  endif()
  list(JOIN flags " " flags)
  set(objects $<TARGET_OBJECTS:${test}>)
  foreach(library IN LISTS ARGN ITEMS GTest::gtest GTest::gtest_main)
    if(TARGET ${library})
      list(APPEND objects $<TARGET_LINKER_FILE:${library}>)
    else()
      list(APPEND objects ${library})
    endif()
  endforeach()
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/extending_test.sh
    ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${change} ${PROJECT_SOURCE_DIR} ${flags} "$<JOIN:${objects},|>" ${filter} ${most})
  set_tests_properties(${name} PROPERTIES LABELS local TIMEOUT 240)
endfunction()

if(NOT TRESTLE_SANITIZE AND NOT TRESTLE_COVERAGE)
  trestle_extending(extending_algorithm_test algorithm.patch 3 algorithms_test "*ternary*:AlgorithmCost.*:Scratch.*"
    trestle_algorithms trestle_plan trestle_base)
  set(others ${SODIUM_LINK_LIBRARIES} ${HWY_LINK_LIBRARIES})
  foreach(library IN LISTS CMAKE_DL_LIBS)
    list(APPEND others -l${library})
  endforeach()
  trestle_extending(extending_transport_test transport.patch 2 transport_conformance_test "*metered*:TransportCatalog.*"
    trestle_transport trestle_memory trestle_kernels trestle_base ${others})
  # Tests the same transport in a communicator that selects it by TRESTLE_TRANSPORT.
  trestle_extending(extending_selection_test transport.patch 2 comm_test "*metered*"
    trestle_comm trestle_rendezvous trestle_control_mesh trestle_engine trestle_device trestle_kernels_cuda
    trestle_express trestle_sched trestle_algorithms trestle_plan trestle_topology trestle_nvml
    trestle_transport trestle_memory trestle_kernels trestle_base ${others})
endif()
