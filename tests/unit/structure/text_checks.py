"""What stands in files beside the code: unfinished marks, names, READMEs, format."""
import os
import re
import shutil
import subprocess

_MARK = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")
_VAGUE = re.compile(r"(^|[/_])(utils?|helpers?|manager|misc|impl2)([_.]|/)")


def nothing_is_marked_unfinished(files):
    for file in files:
        for number, line in enumerate(file.text.split("\n"), 1):
            if _MARK.search(line):
                yield f"{file.path}:{number}: finish it or leave it out: {line.strip()}"


def names_say_what_is_inside(files):
    for file in files:
        if _VAGUE.search(file.path):
            yield f"{file.path}: a name that could hold anything"


def headers_are_guarded(files):
    for file in files:
        excused = file.path.startswith("common/optimizer_abi/") or file.path.endswith("-inl.h")
        if file.path.endswith(".h") and not excused and not file.text.startswith("#pragma once\n"):
            yield f"{file.path}: the first line of a header is #pragma once"


def errors_are_said_without_throwing(files):
    for file in files:
        if file.path.startswith("tests/") or not file.is_cpp:
            continue
        for number, line in enumerate(file.code().split("\n"), 1):
            if re.search(r"\bprint\(\s*stderr\b", line):
                yield f"{file.path}:{number}: print_error: fmt::print throws where stderr cannot be written"


def folders_explain_themselves(files, root):
    folders = {os.path.dirname(file.path) for file in files if not file.path.startswith("tests/")}
    folders |= {"tests", "tests/support", "tests/unit/structure"}
    for folder in sorted(folders):
        if folder not in ("common", "services") and not os.path.exists(os.path.join(root, folder, "README.md")):
            yield f"{folder}: no README.md that says what lives there and why"


def format_is_that_of_clang_format(files, root):
    program = shutil.which("clang-format")
    if not program:
        print("clang-format is not installed (bootstrap does): the format was not checked")
        return
    paths = [file.path for file in files if file.path.endswith((".h", ".cpp"))]
    for start in range(0, len(paths), 50):
        result = subprocess.run([program, "--dry-run", "-Werror", *paths[start:start + 50]], cwd=root,
                                capture_output=True, text=True, check=False)
        for path in sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: error", result.stderr, re.MULTILINE))):
            yield f"{path}: run clang-format -i on it"


CHECKS = (nothing_is_marked_unfinished, names_say_what_is_inside, headers_are_guarded,
          errors_are_said_without_throwing)
ROOTED_CHECKS = (folders_explain_themselves, format_is_that_of_clang_format)
