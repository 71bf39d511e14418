trestle_test(NAME base_test LABEL unit LIBS trestle_base SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/agree_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/collective_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/config_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/config_sources_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/descriptor_room_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_file_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/numa_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/operation_number_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rank_names_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_kinds_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/values_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/wait_marks_test.cpp)
