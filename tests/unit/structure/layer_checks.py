"""Includes point downwards only, and each third-party library has its fence (design: folders and rules)."""

# Library → (beginnings of its includes, where they may be).
FENCES = {
    "libtorch": (("ATen/", "torch/", "c10/"), ("services/worker/", "common/collectives/gloo/", "tests/")),
    "RocksDB": (("rocksdb/",), ("services/checkpoint/",)),
    "ZeroMQ": (("zmq",), ("common/msg/", "tests/")),  # tests send what no message of ours would be
    "spdlog": (("spdlog/",), ("common/base/log.cpp",)),
    "toml++": (("toml++/", "toml.hpp"), ("common/config/",)),
    "SentencePiece": (("sentencepiece",), ("services/data/",)),
    # A library of a test that stands before another one has to find that.
    "dlopen": (("dlfcn.h",), ("services/optimizer/", "tests/")),
    "Highway": (("hwy/",), ("services/optimizer/", "services/worker/", "common/wire/", "common/collectives/",
                            "common/newton_schulz/elements.cpp", "tests/")),
    "OpenBLAS": (("cblas.h",), ("common/newton_schulz/cblas/",)),
    "Boost": (("boost/",), ("launcher/",)),
    "CUDA": (("cuda", "nccl"), ()),
}


def area_of(path):
    """"common/shm" of "common/shm/segment.h", "services/worker" of "services/worker/model/layer.h"."""
    parts = path.split("/")
    return parts[0] if parts[0] == "schemas" else "/".join(parts[:2])


def may_include(includer, included):
    """Whether a file may include another one of this tree; both by path."""
    top, target = includer.split("/")[0], included.split("/")[0]
    if top == "tests":
        return True
    if target == "tests":
        return False
    if includer.startswith("services/optimizer/plugins/"):
        # A plugin is a stranger: it sees the ABI and itself.
        return included.startswith(("common/optimizer_abi/", "services/optimizer/plugins/"))
    below = {"schemas": ("schemas",), "common": ("common", "schemas"), "services": ("common", "schemas"),
             "launcher": ("launcher", "common", "schemas")}
    return target in below[top] or (top == "services" and area_of(includer) == area_of(included))


def includes_point_downwards(files):
    tops = ("common/", "services/", "launcher/", "tests/", "schemas/")
    for file in files:
        for line, included in file.includes():
            if included.startswith(tops) and not may_include(file.path, included):
                yield f"{file.path}:{line}: {area_of(file.path)} may not include {included}"


def common_folders_form_no_cycle(files):
    uses = {}
    for file in files:
        if file.path.startswith("common/"):
            for _, included in file.includes():
                if included.startswith("common/") and area_of(included) != area_of(file.path):
                    uses.setdefault(area_of(file.path), set()).add(area_of(included))
    done = set()

    def visit(area, way):
        if area in way:
            yield "cycle: " + " → ".join(way[way.index(area):] + [area])
        elif area not in done:
            for used in sorted(uses.get(area, ())):
                yield from visit(used, way + [area])
            done.add(area)

    for area in sorted(uses):
        yield from visit(area, [])


def libraries_stay_behind_their_fences(files):
    for file in files:
        for line, included in file.includes():
            if included == "torch/torch.h":
                yield f"{file.path}:{line}: torch/torch.h takes 19 s to compile; include the parts that are needed"
            for library, (beginnings, homes) in FENCES.items():
                if included.startswith(beginnings) and not file.path.startswith(homes):
                    where = " and ".join(homes) or "files of its own, chosen in CMake"
                    yield f"{file.path}:{line}: {library} belongs into {where}, not here"


def logic_has_no_conditional_compilation(files):
    for file in files:
        # The C ABI is read by C compilers too; Highway compiles a file once for each instruction set.
        excused = file.path.startswith("common/optimizer_abi/") or any(i.startswith("hwy/") for _, i in file.includes())
        if not file.is_cpp or excused:
            continue
        for number, line in enumerate(file.code().split("\n"), 1):
            if line.lstrip().startswith(("#if", "#elif")):
                yield f"{file.path}:{number}: a backend is a file chosen in CMake, not an #if"


CHECKS = (includes_point_downwards, common_folders_form_no_cycle, libraries_stay_behind_their_fences,
          logic_has_no_conditional_compilation)
