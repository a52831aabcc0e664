# SPDX-License-Identifier: Apache-2.0
# The core of prometheus-cpp (metrics and their text, no server) by header and library. Debian's development package can be
# installed for one architecture at a time only, and its headers serve all; so a library that came without it, under its
# full name, will do.
find_path(prometheus_cpp_core_INCLUDE_DIR prometheus/registry.h)
find_library(prometheus_cpp_core_LIBRARY NAMES prometheus-cpp-core libprometheus-cpp-core.so.1.0)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(prometheus-cpp-core
  REQUIRED_VARS prometheus_cpp_core_LIBRARY prometheus_cpp_core_INCLUDE_DIR)
if(prometheus-cpp-core_FOUND AND NOT TARGET prometheus-cpp::core)
  add_library(prometheus-cpp::core UNKNOWN IMPORTED)
  set_target_properties(prometheus-cpp::core PROPERTIES IMPORTED_LOCATION ${prometheus_cpp_core_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${prometheus_cpp_core_INCLUDE_DIR})
endif()
