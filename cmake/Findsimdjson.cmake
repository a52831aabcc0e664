# SPDX-License-Identifier: Apache-2.0
# simdjson by header and library. Debian's development package can be installed for one architecture at a time only, and its
# header serves all; so a library that came without it, under its full name, will do.
find_path(simdjson_INCLUDE_DIR simdjson.h)
find_library(simdjson_LIBRARY NAMES simdjson libsimdjson.so.14)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(simdjson REQUIRED_VARS simdjson_LIBRARY simdjson_INCLUDE_DIR)
if(simdjson_FOUND AND NOT TARGET simdjson::simdjson)
  add_library(simdjson::simdjson UNKNOWN IMPORTED)
  set_target_properties(simdjson::simdjson PROPERTIES IMPORTED_LOCATION ${simdjson_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${simdjson_INCLUDE_DIR} INTERFACE_COMPILE_DEFINITIONS SIMDJSON_THREADS_ENABLED=1)
endif()
