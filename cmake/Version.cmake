# Run at every build: cmake -DSOURCE=… -DTEMPLATE=… -DOUTPUT=… -DVERSION=… -DBUILD_TYPE=… -DSANITIZERS=… -P Version.cmake
# Writes OUTPUT from TEMPLATE when what it says has changed, so that a new commit compiles this one file again.
find_program(GIT_PROGRAM git)
set(COMMIT "")
if(GIT_PROGRAM)
  execute_process(COMMAND ${GIT_PROGRAM} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT COMMIT MATCHES "^[0-9a-f]+(-dirty)?$")
  set(COMMIT unknown)
endif()
if(NOT BUILD_TYPE)
  set(BUILD_TYPE none)
endif()
if(NOT SANITIZERS)
  set(SANITIZERS none)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
