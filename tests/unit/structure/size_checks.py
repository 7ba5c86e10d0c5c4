"""Sizes of files and functions (design: folders and rules)."""
import re

FILE_LIMIT = 300
FUNCTION_LIMIT = 60
MAIN_LIMIT = 60
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b|^\s*extern\b")


def is_function(head):
    """Whether a '{' after this text (back to the last ';', '{' or '}') opens the body of a function."""
    if "(" not in head or (_SCOPE.search(head) and not re.search(r"\)\s*(const|noexcept|override|final|\s)*$", head)):
        return False
    flat = re.sub(r"operator\s*[=!<>]=?", "operator", head)
    while True:  # what stands in parentheses or angle brackets may have a '='
        shorter = re.sub(r"\([^()]*\)|<[^<>]*>", "", flat)
        if shorter == flat:
            break
        flat = shorter
    return "=" not in flat


def functions(code):
    """(first line, number of lines, head) of every function at namespace or class level."""
    line, head, head_line = 1, "", 1
    stack = []  # one entry per open brace: None for a scope, (line, head) for a function, "inner" inside one
    for char in code:
        if char == "\n":
            line += 1
        if char == "{":
            inside = any(entry is not None for entry in stack)
            stack.append("inner" if inside else (head_line, head.strip()) if is_function(head) else None)
        elif char == "}" and stack:
            entry = stack.pop()
            if isinstance(entry, tuple):
                yield entry[0], line - entry[0] + 1, entry[1]
        access_label = char == ":" and head.strip() in ("public", "protected", "private")
        if char in "{};" or access_label:
            head = ""
        else:
            if not head.strip():
                head_line = line
            head += char


def without_macros(code):
    """Preprocessor lines are blanked: braces in them need not match."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), code, flags=re.MULTILINE)


def files_are_short(files):
    for file in files:
        if file.lines > FILE_LIMIT:
            yield f"{file.path}: {file.lines} lines; {FILE_LIMIT} at most: give one of its subjects a file"


def mains_are_thin(files):
    for file in files:
        if file.path.endswith("/main.cpp") and file.lines > MAIN_LIMIT:
            yield f"{file.path}: {file.lines} lines; a main has {MAIN_LIMIT} at most and no logic"


def functions_are_short(files):
    for file in files:
        if not file.is_cpp:
            continue
        for line, length, head in functions(without_macros(file.code())):
            if length > FUNCTION_LIMIT:
                name = " ".join(head.split())[-60:]
                yield f"{file.path}:{line}: {length} lines; {FUNCTION_LIMIT} at most: …{name}"


CHECKS = (files_are_short, mains_are_thin, functions_are_short)
