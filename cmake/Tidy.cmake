# Target `tidy`: clang-tidy over the compile commands of this build. Minutes; run by hand. Files with libtorch take part
# only in a build without precompiled headers, which clang cannot read from g++:
#   cmake --preset cpu -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON && ninja -C build/tidy tidy
find_program(RUN_CLANG_TIDY_PROGRAM NAMES run-clang-tidy run-clang-tidy-14 run-clang-tidy-19)
if(RUN_CLANG_TIDY_PROGRAM)
  set(tidy_files "(common/(?!collectives/gloo)|launcher|services/(optimizer|data|checkpoint))")
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set(tidy_files "(common|launcher|services)/")
  endif()
  add_custom_target(tidy
    COMMAND ${RUN_CLANG_TIDY_PROGRAM} -quiet -p ${CMAKE_BINARY_DIR} "${CMAKE_SOURCE_DIR}/${tidy_files}.*\\.cpp$$"
    DEPENDS schema_headers WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL VERBATIM)
endif()
