"""check_programs.py FOLDER: each program of the build folder is linked to what is its own and to nothing heavier.

Only the worker loads libtorch, so the other services start in milliseconds; only the checkpoint service loads RocksDB.
"""
import os
import subprocess
import sys

PROGRAMS = ("ganymede", "ganymede-keeper", "ganymede-launcher", "ganymede-worker", "ganymede-optimizer",
            "ganymede-data", "ganymede-checkpoint")
HOMES = {"libtorch": ("ganymede-worker",), "libc10": ("ganymede-worker",), "librocksdb": ("ganymede-checkpoint",),
         "libsentencepiece": ("ganymede-data", "ganymede-worker"), "libpython": ()}


def libraries(program):
    """Names of all libraries that are loaded with a program, those of libraries included."""
    result = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in result.stdout.splitlines() if line.strip()]


def main(folder):
    code = 0
    for name in PROGRAMS:
        program = os.path.join(folder, name)
        if not os.path.exists(program):
            print(f"{name} was not built")
            code = 1
            continue
        for library in libraries(program):
            for beginning, homes in HOMES.items():
                if os.path.basename(library).startswith(beginning) and name not in homes:
                    print(f"{name} loads {library}; only {', '.join(homes) or 'nobody'} may")
                    code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
