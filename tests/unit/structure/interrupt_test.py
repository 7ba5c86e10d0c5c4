"""Measuring scripts end at Ctrl-C without a traceback. Run with the root of the tree."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

perf = pathlib.Path(sys.argv.pop(1)) / "tests" / "perf"


def scripts():
    return sorted(path for path in perf.rglob("*.py") if "__main__" in path.read_text())


class Interrupt(unittest.TestCase):
    def test_every_script_knows_of_it(self):
        self.assertGreaterEqual(len(scripts()), 4)
        for path in scripts():
            self.assertIn("except KeyboardInterrupt:\n        sys.exit(130)\n", path.read_text(), path)

    def test_a_script_that_waits_for_a_run_ends_with_130_and_says_nothing(self):
        for script, arguments in [("engine/compare.py", ["recipe.toml"]), ("peer/compare.py", [])]:
            with tempfile.TemporaryDirectory() as folder:
                build = pathlib.Path(folder)
                program = build / "ganymede"
                program.write_text(f"#!/bin/sh\ntouch {build}/started\nexec sleep 100\n")
                program.chmod(0o755)
                process = subprocess.Popen([sys.executable, perf / script, build, *arguments],
                                           stderr=subprocess.PIPE, start_new_session=True)
                deadline = time.monotonic() + 60
                while not (build / "started").exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                os.killpg(process.pid, signal.SIGINT)
                said = process.communicate(timeout=60)[1].decode()
                self.assertEqual((process.returncode, said), (130, ""), script)


signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this in the background ignores it
unittest.main()
