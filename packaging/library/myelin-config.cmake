# find_package(myelin CONFIG REQUIRED) makes the target myelin::myelin, for C11 and C++17; and myelin::bag, if the
# library of recordings is installed.
if(TARGET myelin::myelin)
  return()
endif()
get_filename_component(_myelin_library "${CMAKE_CURRENT_LIST_DIR}/../../libmyelin.so" ABSOLUTE)
find_path(_myelin_include myelin.h NO_DEFAULT_PATH NO_CACHE REQUIRED PATHS
  "${CMAKE_CURRENT_LIST_DIR}/../../../include"      # prefix/lib/cmake/myelin
  "${CMAKE_CURRENT_LIST_DIR}/../../../../include")  # /usr/lib/<machine>/cmake/myelin
add_library(myelin::myelin SHARED IMPORTED)
set_target_properties(myelin::myelin PROPERTIES
  IMPORTED_LOCATION "${_myelin_library}"
  INTERFACE_INCLUDE_DIRECTORIES "${_myelin_include}")
get_filename_component(_myelin_bag "${CMAKE_CURRENT_LIST_DIR}/../../libmyelin_bag.so" ABSOLUTE)
if(EXISTS "${_myelin_bag}")
  add_library(myelin::bag SHARED IMPORTED)
  set_target_properties(myelin::bag PROPERTIES
    IMPORTED_LOCATION "${_myelin_bag}"
    INTERFACE_INCLUDE_DIRECTORIES "${_myelin_include}")
endif()
unset(_myelin_bag)
unset(_myelin_library)
unset(_myelin_include)
