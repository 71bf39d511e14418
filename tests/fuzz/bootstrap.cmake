# Messages of other processes while a communicator is made.
trestle_fuzz(NAME bootstrap_fuzz RUNS 20000 SOURCES ${CMAKE_CURRENT_LIST_DIR}/bootstrap_fuzz.cpp LIBS trestle_rendezvous)
