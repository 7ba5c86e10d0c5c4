#!/usr/bin/env python3
"""Steps of two nodes on one machine, joined by a cable that `tc` limits. Needs root and iproute2.

    tests/perf/shaped/run.py BUILD_FOLDER switches [--only TEXT] [--pairs N]
    tests/perf/shaped/run.py BUILD_FOLDER overlap [--set key=value]…
"""

import argparse
import pathlib
import signal
import sys
import tempfile

import overlap
import switches
from network import Network, Obstacle
from training import Training

here = pathlib.Path(__file__).resolve().parent


def rate(text):
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError("above 0 and up to 100: beyond it the cores limit, not the cable")
    return value


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("mode", choices=["switches", "overlap"])
    parser.add_argument("--recipe", type=lambda text: pathlib.Path(text).resolve(), default=here / "shaped.toml")
    parser.add_argument("--mbytes-per-second", type=rate, default=0,
                        help="of the cable, in each direction; standard: 60, in overlap then what makes communication "
                        "as long as computation")
    parser.add_argument("--delay-ms", type=float, default=0, help="of the cable; needs netem in the kernel")
    parser.add_argument("--steps", type=int, default=0, help="of a run, the first 2 not counted")
    parser.add_argument("--pairs", type=int, default=1, help="measure everything so often")
    parser.add_argument("--only", default="", help="switches whose name has this text")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="in all runs")
    arguments = parser.parse_args()
    if 0 < arguments.steps < 4:
        parser.error("--steps is at least 4")
    if not (arguments.build / "ganymede").exists():
        parser.error(f"there is no program ganymede in {arguments.build}: give the folder of a build")
    return arguments


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    mode = {"switches": switches, "overlap": overlap}[arguments.mode]
    # A run directory holds sockets, whose paths are short.
    with tempfile.TemporaryDirectory(prefix="ganymede.") as folder:
        try:
            with Network(arguments.mbytes_per_second or 60, arguments.delay_ms) as network:
                training = Training(arguments.build, arguments.recipe, network, pathlib.Path(folder),
                                    arguments.steps or mode.steps)
                mode.measure(training, arguments)
        except Obstacle as obstacle:
            sys.exit(f"run.py: {obstacle}.")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
