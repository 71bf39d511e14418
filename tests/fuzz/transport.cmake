# Bytes that arrive on a port before and after the handshake.
if(TRESTLE_WITH_TCP)
  trestle_fuzz(NAME handshake_fuzz RUNS 20000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/handshake_fuzz.cpp LIBS trestle_transport)
  trestle_fuzz(NAME frames_fuzz RUNS 50000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/frames_fuzz.cpp LIBS trestle_transport)
endif()

# TRESTLE_RAILS, and what ranks publish of their rails.
trestle_fuzz(NAME rails_fuzz RUNS 20000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/rails_fuzz.cpp LIBS trestle_transport)
