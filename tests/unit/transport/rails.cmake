trestle_test(NAME rails_test LABEL unit LIBS trestle_transport SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/goodput_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rail_choice_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rails_choice_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rails_inventory_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rails_pairing_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rails_text_test.cpp)
if(SODIUM_FOUND)
  target_sources(rails_test PRIVATE
    ${PROJECT_SOURCE_DIR}/tests/support/sim_rails.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_end_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_faults_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_probes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_reports_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_shares_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rails_silence_test.cpp)
endif()
