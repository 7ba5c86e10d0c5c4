# Target `tidy`: clang-tidy over the compile commands of this build. Minutes; run by hand.
find_program(RUN_CLANG_TIDY_PROGRAM NAMES run-clang-tidy run-clang-tidy-14 run-clang-tidy-19)
if(RUN_CLANG_TIDY_PROGRAM)
  # Files with libtorch are left out: their precompiled header is g++'s, which clang cannot read.
  add_custom_target(tidy
    COMMAND ${RUN_CLANG_TIDY_PROGRAM} -quiet -p ${CMAKE_BINARY_DIR}
      "${CMAKE_SOURCE_DIR}/(common/(?!collectives/gloo)|launcher|services/(optimizer|data|checkpoint)).*\\.cpp$$"
    DEPENDS schema_headers WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL VERBATIM)
endif()
