#!/usr/bin/env python3
"""Muon's whole update of a recipe's matrices against torch.optim.Muon on as many matrices of the same shapes, both with
all cores. In turns, the fastest update of each counts. Ours updates embedding, head and vectors by AdamW besides, and
publishes the working copy; torch computes Newton-Schulz in bf16, as it always does.

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
times = []
for _ in range(steps):
    for p in params:
        p.grad = torch.randn_like(p)
    began = time.perf_counter()
    optimizer.step()
    times.append((time.perf_counter() - began) * 1e3)
print(json.dumps(times))
"""


def ours(build, recipe, steps, settings):
    done = subprocess.run([build / "perf_muon", recipe, str(steps), *settings], check=True, capture_output=True)
    return json.loads(done.stdout)


def theirs(python, shapes, steps):
    done = subprocess.run([python, "-c", PEER, json.dumps(shapes), str(steps)], check=True, capture_output=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("recipe", nargs="?", type=pathlib.Path, default=root / "configs" / "recipes" / "small.toml")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--python", default=root / "build" / "peer-venv" / "bin" / "python")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    own, other = [], []
    for _ in range(arguments.turns):
        measured = ours(arguments.build, arguments.recipe, arguments.steps, arguments.settings)
        own.append(min(measured["update_ms"]))
        other.append(min(theirs(arguments.python, measured["matrices"], arguments.steps)))
        print(f"ganymede {own[-1]:9.1f} ms   torch.optim.Muon {other[-1]:9.1f} ms   ratio {other[-1] / own[-1]:.2f}",
              flush=True)
    print(f"fastest {min(own):.1f} : {min(other):.1f} ms = {min(other) / min(own):.2f}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
