# Compiler, linker and warning settings that hold for every target.
option(GANYMEDE_CCACHE "Compile through ccache when it is installed" ON)
set(GANYMEDE_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined' or 'thread'")

if(GANYMEDE_CCACHE)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  endif()
endif()

add_compile_options(-Wall -Wextra -Werror -Wshadow=local $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict)  # g++ 12 warns about std::string itself (GCC bug 105329)
endif()
# a * b + c must round the same way wherever the compiler meets it: contraction is written by hand where it is wanted.
add_compile_options(-ffp-contract=off)
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
endif()

if(GANYMEDE_SANITIZE)
  add_compile_options(-fsanitize=${GANYMEDE_SANITIZE} -fno-sanitize-recover=all)
  # g++ 12 warns about the standard library's own code once it is instrumented.
  add_compile_options(-Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${GANYMEDE_SANITIZE})
endif()
