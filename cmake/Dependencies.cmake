# Everything from outside the tree. `bootstrap` installs the Debian packages and the torch wheel.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(zeromq REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(openblas REQUIRED IMPORTED_TARGET openblas)
find_library(ROCKSDB_LIBRARY rocksdb REQUIRED)
find_library(NUMA_LIBRARY numa REQUIRED)
find_library(FLATBUFFERS_LIBRARY flatbuffers REQUIRED)
find_program(FLATC_PROGRAM flatc REQUIRED)

# libtorch comes from the wheel; only the CPU half is linked (libtorch_cpu, libc10).
file(GLOB torch_roots ${GANYMEDE_VENV}/lib/python3*/site-packages/torch)
if(NOT torch_roots)
  message(FATAL_ERROR "No torch wheel under ${GANYMEDE_VENV}: run ./bootstrap first.")
endif()
list(GET torch_roots 0 TORCH_ROOT)
cmake_path(GET TORCH_ROOT PARENT_PATH site_packages)
file(GLOB cuda_runtime_folders ${site_packages}/nvidia/cu13/lib)
add_library(torch_cpu_only INTERFACE)
# The wheel carries its own fmt: its folders come last, or spdlog would meet two versions.
target_compile_options(torch_cpu_only INTERFACE
  "SHELL:-idirafter ${TORCH_ROOT}/include" "SHELL:-idirafter ${TORCH_ROOT}/include/torch/csrc/api/include")
# ATen's parallel loops are templates: without this they run on one thread. The run path finds the wheel's libgomp first,
# so that there is one thread pool.
target_compile_options(torch_cpu_only INTERFACE -fopenmp)
target_link_options(torch_cpu_only INTERFACE -fopenmp)
target_link_directories(torch_cpu_only INTERFACE ${TORCH_ROOT}/lib)
target_link_libraries(torch_cpu_only INTERFACE torch_cpu c10 Threads::Threads)
target_link_options(torch_cpu_only INTERFACE
  "LINKER:-rpath,${TORCH_ROOT}/lib" "LINKER:-rpath,${cuda_runtime_folders}"
  "LINKER:-rpath-link,${cuda_runtime_folders}")
