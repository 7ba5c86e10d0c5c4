# ganymede_library(NAME [TORCH] DEPS target...): every .cpp of this folder but main.cpp and what
# EXCLUDE names, as a static library whose headers are included from the root of the tree.
function(ganymede_library name)
  cmake_parse_arguments(arg "TORCH" "" "DEPS;PRIVATE_DEPS;EXCLUDE;FOLDERS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder IN LISTS arg_FOLDERS)
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  foreach(excluded IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
    if(arg_TORCH)
      target_link_libraries(${name} PUBLIC torch_cpu_only)
      target_precompile_headers(${name} PRIVATE <ATen/ATen.h> <torch/csrc/autograd/autograd.h>)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_DEPS} ${arg_PRIVATE_DEPS})
  endif()
endfunction()

# Where the tree and its build are, for tests that read files and start programs. A header, and no definition on every
# command line: so all clones of the tree share what a compiler cache holds.
set(GANYMEDE_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${GANYMEDE_GENERATED}/tests/support/tree.h @ONLY CONTENT [[
#pragma once

#define GANYMEDE_SOURCE_DIR "@CMAKE_SOURCE_DIR@"
#define GANYMEDE_BINARY_DIR "@CMAKE_BINARY_DIR@"
]])

# ganymede_test(KIND AREA [LABELS label...] DEPS target...): every .cpp of this folder as one GoogleTest
# program `KIND_AREA`; each test of it is a CTest test with label KIND.
function(ganymede_test kind area)
  cmake_parse_arguments(arg "TORCH" "TIMEOUT" "DEPS;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  set(name ${kind}_${area})
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${GANYMEDE_GENERATED})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  if(arg_TORCH)
    target_precompile_headers(${name} PRIVATE <ATen/ATen.h> <torch/csrc/autograd/autograd.h>)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(GANYMEDE_SANITIZE)
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${kind}.${area}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    NO_PRETTY_VALUES
    TEST_LIST ${name}_tests PROPERTIES LABELS ${kind} TIMEOUT ${arg_TIMEOUT})
  if(arg_LABELS)
    # gtest_discover_tests cannot pass a list as one property; the names are known when ctest runs.
    set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(CONFIGURE OUTPUT ${labels_file} @ONLY CONTENT
      "set_tests_properties(\${@name@_tests} PROPERTIES LABELS \"@kind@;@arg_LABELS@\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
  endif()
endfunction()

# ganymede_program(NAME SOURCE DEPS target...): a thin main.
function(ganymede_program name source)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
endfunction()
