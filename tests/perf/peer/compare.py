#!/usr/bin/env python3
"""Tokens a second of configs/recipes/small.toml against the same shape in PyTorch + transformers: on one rank, or on two
with one core each, there against FSDP2 over gloo. Pairs of runs, one after the other, so that a slow moment of the
machine meets both; with all activations kept, and with full recomputation.

    tests/perf/peer/compare.py BUILD_FOLDER [--dtype fp32|bf16] [--ranks 1|2] [--pairs N] [--steps N]
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
recipe = here.parents[2] / "configs" / "recipes" / "small.toml"


def ganymede(build, run, dtype, ranks, steps, recompute):
    shutil.rmtree(run, ignore_errors=True)
    settings = ["validation.every_steps=0", 'sample.prompt=""', "checkpoint.every_steps=0", f"compute.dtype={dtype}",
                f"wire.dense_gather={dtype}", f"wire.expert_gather={dtype}", f"recompute={recompute}",
                f"parallel.ranks={ranks}"]
    command = [build / "ganymede", "train", recipe, "--run", run, "--steps", str(steps)]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    # From the end of one update to the end of the next: what a user waits for.
    return statistics.median(line["tokens_per_second"] for line in lines[2:])


def peer(arguments):
    done = subprocess.run([here / "run", *arguments], check=True, capture_output=True)
    return json.loads(done.stdout)["tokens_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--ranks", type=int, choices=[1, 2], default=1)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()
    common = ["--dtype", arguments.dtype, "--steps", "4", "--ranks", str(arguments.ranks),
              "--threads", str(2 // arguments.ranks)]
    variants = {"none": common, "full": [*common, "--checkpointing"]}
    ratios = {name: [] for name in variants}
    with tempfile.TemporaryDirectory(prefix="ganymede.") as folder:
        for _ in range(arguments.pairs):
            for recompute, options in variants.items():
                ours = ganymede(arguments.build, pathlib.Path(folder) / "run", arguments.dtype, arguments.ranks,
                                arguments.steps, recompute)
                theirs = peer(options)
                ratios[recompute].append(ours / theirs)
                print(f"recompute {recompute}: ganymede {ours:7.0f} tok/s   transformers {theirs:7.0f} tok/s"
                      f"   ratio {ratios[recompute][-1]:.2f}", flush=True)
    for name, values in ratios.items():
        print(f"median ratio, recompute {name}: {statistics.median(values):.2f}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
