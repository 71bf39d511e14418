# docs/extending.md, done: an algorithm and a transport are added to copies of their folders by patches.
# trestle_extending(NAME PATCH TEST FILTER LIBRARIES...): with the objects of the test executable TEST.
function(trestle_extending name change test filter)
  set(flags ${CMAKE_CXX_COMPILER} -std=gnu++20 -O1 -fPIC -Wall -Wextra -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND flags -Wno-restrict) # as everywhere
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
    ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${change} ${PROJECT_SOURCE_DIR} ${flags} "$<JOIN:${objects},|>" ${filter})
  set_tests_properties(${name} PROPERTIES LABELS local TIMEOUT 240)
endfunction()

if(NOT TRESTLE_SANITIZE AND NOT TRESTLE_COVERAGE)
  trestle_extending(extending_algorithm_test algorithm.patch algorithms_test "*ternary*:AlgorithmCost.*:Scratch.*"
    trestle_algorithms trestle_plan trestle_base)
  set(libraries trestle_transport trestle_kernels trestle_base)
  foreach(library IN LISTS SODIUM_LINK_LIBRARIES HWY_LINK_LIBRARIES)
    list(APPEND libraries ${library})
  endforeach()
  # Within a process there is nothing to connect, which the case left out knows of loopback by its name.
  trestle_extending(extending_transport_test transport.patch transport_conformance_test "*metered*-*APeerThatDiesWhileConnecting*" ${libraries})
endif()
