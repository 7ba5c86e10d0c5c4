"""check_tree.py ROOT CHECK: runs one structure check on the tree; lists what breaks the rule; exit code 1 if any."""
import sys

import layer_checks
import size_checks
import source_tree
import text_checks

PLAIN = {check.__name__: check for check in layer_checks.CHECKS + size_checks.CHECKS + text_checks.CHECKS}
ROOTED = {check.__name__: check for check in text_checks.ROOTED_CHECKS}


def run(root, name):
    files = source_tree.source_files(root)
    return list(ROOTED[name](files, root) if name in ROOTED else PLAIN[name](files))


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join([*PLAIN, *ROOTED]))
        return 0
    if len(arguments) != 2 or arguments[1] not in (*PLAIN, *ROOTED):
        print(__doc__, file=sys.stderr)
        return 2
    found = run(*arguments)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
