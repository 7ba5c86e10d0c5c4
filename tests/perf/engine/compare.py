#!/usr/bin/env python3
"""What services cost: step time of one rank as four processes against the same engine, data and update in one
process. Pairs of runs, one after the other, so that a slow moment of the machine meets both. On a virtual machine
whose cores are at times two threads of one core, look at the fastest runs: those had the cores for themselves.

    tests/perf/engine/compare.py BUILD_FOLDER RECIPE [--steps N] [--pairs N] [--set key=value]...
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile


def four_processes(build, recipe, run, steps, settings):
    shutil.rmtree(run, ignore_errors=True)
    command = [build / "ganymede", "train", recipe, "--run", run, "--steps", str(steps)]
    for setting in ["parallel.ranks=1", "parallel.expert_group=1", "validation.every_steps=0", 'sample.prompt=""',
                    "optimizer.warmup_steps=5",
                    *settings]:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["step_ms"] for line in lines[len(lines) // 5:])


def one_process(build, run, steps):
    done = subprocess.run([build / "perf_engine", run / "config.toml", str(steps)], check=True, capture_output=True)
    return json.loads(done.stdout)["step_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("recipe", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory(prefix="ganymede.") as folder:
        run = pathlib.Path(folder) / "run"
        for _ in range(arguments.pairs):
            four = four_processes(arguments.build, arguments.recipe, run, arguments.steps, arguments.settings)
            one = one_process(arguments.build, run, arguments.steps)
            pairs.append((four, one))
            print(f"four processes {four:9.2f} ms   one process {one:9.2f} ms   ratio {four / one:.3f}", flush=True)
    fastest = [min(times) for times in zip(*pairs)]
    print(f"median ratio {statistics.median(four / one for four, one in pairs):.3f}   "
          f"fastest runs {fastest[0]:.2f} : {fastest[1]:.2f} ms = {fastest[0] / fastest[1]:.3f}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
