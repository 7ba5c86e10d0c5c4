"""The structure checks find what they are there for: each is run on a small tree that breaks its rule."""
import os
import tempfile
import unittest

import check_tree
import size_checks


def lines_of_function(count):
    return "int f(int x) {\n" + "  ++x;\n" * (count - 3) + "  return x;\n}\n"


class StructureChecks(unittest.TestCase):
    def found(self, check, content):
        """What a check says about a tree of {path: text}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in content.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return check_tree.run(root, check)

    def assert_allowed(self, check, content):
        self.assertEqual(self.found(check, content), [])

    def assert_refused(self, check, content, part):
        found = self.found(check, content)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_upward_and_sideways_includes_are_found(self):
        check = "includes_point_downwards"
        self.assert_refused(check, {"common/a/a.h": '\n#include "services/data/b.h"\n'}, "common/a/a.h:2")
        self.assert_refused(check, {"services/data/a.h": '#include "services/worker/b.h"\n'}, "services/data")
        self.assert_refused(check, {"services/data/a.h": '#include "launcher/cli/b.h"\n'}, "launcher/cli/b.h")
        self.assert_refused(check, {"launcher/cli/a.h": '#include "tests/support/b.h"\n'}, "tests/support")
        self.assert_refused(check, {"services/optimizer/plugins/adamw/a.cpp": '#include "common/base/log.h"\n'}, "log.h")
        self.assert_allowed(check, {"services/worker/engine/a.h": '#include "services/worker/model/b.h"\n'})
        self.assert_allowed(check, {"launcher/cli/a.h": '#include "common/base/b.h"\n#include "schemas/c_generated.h"\n'})
        self.assert_allowed(check, {"tests/unit/a/a.cpp": '#include "services/data/b.h"\n'})

    def test_cycles_between_common_folders_are_found(self):
        check = "common_folders_form_no_cycle"
        ring = {"common/a/a.h": '#include "common/b/b.h"\n', "common/b/b.h": '#include "common/c/c.h"\n'}
        self.assert_allowed(check, ring)
        self.assert_refused(check, {**ring, "common/c/c.h": '#include "common/a/d.h"\n'}, "common/a → common/b → common/c")

    def test_libraries_outside_their_fences_are_found(self):
        check = "libraries_stay_behind_their_fences"
        self.assert_refused(check, {"services/data/a.cpp": "#include <ATen/ATen.h>\n"}, "libtorch")
        self.assert_refused(check, {"services/worker/a.cpp": "#include <torch/torch.h>\n"}, "19 s")
        self.assert_refused(check, {"common/base/a.cpp": "#include <spdlog/logger.h>\n"}, "spdlog")
        self.assert_refused(check, {"common/shm/a.cpp": "#  include <zmq.hpp>\n"}, "ZeroMQ")
        self.assert_refused(check, {"launcher/cli/a.cpp": "#include <rocksdb/db.h>\n"}, "RocksDB")
        self.assert_refused(check, {"common/os/a.cpp": "#include <dlfcn.h>\n"}, "dlopen")
        self.assert_allowed(check, {"services/worker/a.cpp": "#include <ATen/ATen.h>\n"})

    def test_conditional_compilation_is_found_in_code_only(self):
        check = "logic_has_no_conditional_compilation"
        self.assert_refused(check, {"common/a/a.cpp": "\n#ifdef CUDA\n#endif\n"}, "common/a/a.cpp:2")
        self.assert_allowed(check, {"common/a/a.cpp": '/*\n#ifdef A\n*/ const char* x = "\\n#if";\n'})
        self.assert_allowed(check, {"services/worker/a.cpp": "#include <hwy/highway.h>\n#if HWY_ONCE\n#endif\n"})

    def test_long_files_and_mains_are_found(self):
        self.assert_refused("files_are_short", {"common/a/a.cpp": "\n" * 301}, "301 lines")
        self.assert_allowed("files_are_short", {"common/a/a.cpp": "\n" * 300})
        self.assert_refused("mains_are_thin", {"services/data/main.cpp": "\n" * 61}, "61 lines")

    def test_long_functions_are_found(self):
        check = "functions_are_short"
        self.assert_allowed(check, {"common/a/a.cpp": lines_of_function(60)})
        self.assert_refused(check, {"common/a/a.cpp": "namespace a {\n" + lines_of_function(61) + "}\n"}, "a.cpp:2: 61")
        in_class = "class A : public B {\n public:\n  " + lines_of_function(61) + "};\n"
        self.assert_refused(check, {"common/a/a.h": in_class}, "61 lines")
        operator = lines_of_function(61).replace("int f(int x)", "bool A::operator==(const A& x) const noexcept")
        self.assert_refused(check, {"common/a/a.cpp": operator}, "operator==")
        self.assert_refused(check, {"tests/a.cpp": lines_of_function(61).replace("int f(int x)", "TEST(A, B)")}, "TEST")

    def test_braces_that_are_no_code_do_not_count(self):
        code = 'const char* a = "}{{"; // }}\nchar b = \'{\';\nauto c = R"({{{)";\n#define OPEN {\nint f() {\n  return 1\'000;\n}\n'
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "common"))
            with open(os.path.join(root, "common/a.cpp"), "w", encoding="utf-8") as file:
                file.write(code)
            file = check_tree.source_tree.source_files(root)[0]
            found = list(size_checks.functions(size_checks.without_macros(file.code())))
        self.assertEqual(found, [(5, 3, "int f()")])

    def test_tables_and_types_are_no_functions(self):
        long = ",\n".join(["{1, f(2)}"] * 80)
        self.assert_allowed("functions_are_short", {"common/a/a.cpp": "const A table[] = {\n" + long + "};\n"})
        self.assert_allowed("functions_are_short", {"common/a/a.h": "struct A {\n" + "  int f(int x = {});\n" * 80 + "};\n"})

    def test_marks_names_guards_and_readmes_are_checked(self):
        self.assert_refused("nothing_is_marked_unfinished", {"common/a/a.cpp": "\n// TO" + "DO later\n"}, "a.cpp:2")
        self.assert_refused("names_say_what_is_inside", {"common/a/string_utils.cpp": ""}, "string_utils")
        self.assert_refused("headers_are_guarded", {"common/a/a.h": "int a;\n"}, "pragma once")
        self.assert_refused("errors_are_said_without_throwing",
                            {"common/a/a.cpp": 'int a;\nvoid f() { fmt::print(stderr, "x"); }\n'}, "a.cpp:2")
        readmes = {f"{folder}/README.md": "" for folder in ("tests", "tests/support", "tests/unit/structure")}
        self.assert_refused("folders_explain_themselves", {**readmes, "common/a/a.cpp": ""}, "common/a")


if __name__ == "__main__":
    unittest.main()
