"""The source tree as the structure checks see it: files, includes, code without comments."""
import os
import re

CODE_FOLDERS = ("common", "services", "launcher", "tests", "schemas")
CODE_ENDINGS = (".h", ".cpp", ".c", ".fbs", ".py")
_INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
# A comment, a raw string, a string or a character; what stands in them is not code.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


class SourceFile:
    def __init__(self, root, path):
        self.path = path  # from the root, with '/'
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.text = file.read()

    @property
    def lines(self):
        return self.text.count("\n")

    @property
    def is_cpp(self):
        return self.path.endswith((".h", ".cpp", ".c"))

    def includes(self):
        """(line, path) of every include."""
        return [(self.text.count("\n", 0, at.start(2)) + 1, at.group(2)) for at in _INCLUDE.finditer(self.text)]

    def code(self):
        """The text with comments and strings blanked out, line for line."""
        def blank(match):
            piece = match.group(0)
            kept = "\n" * piece.count("\n")
            return kept if piece.startswith("/") else '""' + kept
        return _NOT_CODE.sub(blank, self.text)


def source_files(root):
    """All files with code below the code folders, in a fixed order."""
    found = []
    for top in CODE_FOLDERS:
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = sorted(name for name in names if name not in ("build", "__pycache__"))
            for name in sorted(files):
                if name.endswith(CODE_ENDINGS):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    found.append(SourceFile(root, path.replace(os.sep, "/")))
    return found
