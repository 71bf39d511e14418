trestle_test(NAME transport_conformance_test LABEL conformance LIBS trestle_transport SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/transport_conformance.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_agreement_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_life_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_messages_test.cpp)
if(TRESTLE_WITH_TCP)
  target_sources(transport_conformance_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/tcp_strangers_test.cpp)
endif()
