# Which interfaces are rails, and which rails two ranks have in common. Needs no library.
target_sources(trestle_transport PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/choice.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fabric.cpp
  ${CMAKE_CURRENT_LIST_DIR}/inventory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pairing.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pci.cpp
  ${CMAKE_CURRENT_LIST_DIR}/published.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rails_text.cpp)
