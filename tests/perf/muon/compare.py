#!/usr/bin/env python3
"""Muon's whole update of a recipe's matrices against torch.optim.Muon on as many matrices of the same shapes, both with
all cores. In turns, the fastest update of each counts. Ours updates embedding, head and vectors by AdamW besides, and
publishes the working copy; torch computes Newton-Schulz in bf16, as it always does. update_ms is what the clock says;
processor_ms is the time of all the threads of a process, which other programs on the machine disturb less.

    tests/perf/muon/compare.py BUILD_FOLDER [RECIPE] [--turns N] [--set KEY=VALUE]...

Needs the Python environment that tests/perf/peer/run makes.
"""
import argparse
import json
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[3]

PEER = """
import json, sys, time, torch
torch.manual_seed(1)
shapes, steps = json.loads(sys.argv[1]), int(sys.argv[2])
params = [torch.nn.Parameter(torch.randn(r, c) * .02) for r, c, n in shapes for _ in range(n)]
optimizer = torch.optim.Muon(params, lr=1e-3)
times, processor = [], []
for _ in range(steps):
    for p in params:
        p.grad = torch.randn_like(p)
    began, before = time.perf_counter(), time.process_time()
    optimizer.step()
    times.append((time.perf_counter() - began) * 1e3)
    processor.append((time.process_time() - before) * 1e3)
print(json.dumps({"update_ms": times, "processor_ms": processor}))
"""


def ours(build, recipe, steps, settings):
    done = subprocess.run([build / "perf_muon", recipe, str(steps), *settings], check=True, capture_output=True)
    return json.loads(done.stdout)


def theirs(python, shapes, steps):
    done = subprocess.run([python, "-c", PEER, json.dumps(shapes), str(steps)], check=True, capture_output=True)
    return json.loads(done.stdout)


def line(what, pair):
    own, other = pair
    return f"{what:12}  ganymede {own:9.1f}   torch.optim.Muon {other:9.1f}   ratio {other / own:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("recipe", nargs="?", type=pathlib.Path, default=root / "configs" / "recipes" / "small.toml")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--python", default=root / "build" / "peer-venv" / "bin" / "python")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    least = {}
    for _ in range(arguments.turns):
        own = ours(arguments.build, arguments.recipe, arguments.steps, arguments.settings)
        other = theirs(arguments.python, own["matrices"], arguments.steps)
        for what in "update_ms", "processor_ms":
            pair = min(own[what]), min(other[what])
            least[what] = tuple(map(min, least.get(what, pair), pair))
            print(line(what, pair), flush=True)
    print("fastest")
    for what, pair in least.items():
        print(line(what, pair))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
