#!/usr/bin/env python3
"""The optimizer's update against a copy loop, against itself without redo, and against PyTorch, in turns in one run.

    tests/perf/optimizer/run BUILD_FOLDER [--millions 200] [--threads 2] [--turns 15] [--no-peer]

Prints one JSON object. Of each measure the fastest turn counts, for all alike: what disturbs a turn only makes it slower.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import time

MEASURES = ("copy", "streamed_copy", "update", "in_place", "unpublished", "publishing_pass", "whole")


class Ours:
    """perf_optimizer, asked for one measure at a time."""

    def __init__(self, build, millions, threads):
        command = [str(pathlib.Path(build) / "perf_optimizer"), str(millions), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.elements, self.bytes = map(int, self.answer().split())

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("compare.py: perf_optimizer ended early; what it said is above")
        return line

    def seconds(self, measure):
        self.process.stdin.write(measure + "\n")
        self.process.stdin.flush()
        return float(self.answer())


class Peer:
    """DeepSpeedCPUAdam over one flat parameter; torch's fused AdamW where DeepSpeed cannot be built."""

    def __init__(self, elements, threads):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        self.parameter = torch.nn.Parameter(torch.empty(elements).normal_(std=0.02))
        self.parameter.grad = torch.full((elements,), 1e-3)
        self.working = torch.empty(elements, dtype=torch.bfloat16)
        settings = {"lr": 1e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
        try:
            with contextlib.redirect_stdout(sys.stderr):  # where it says what it found
                from deepspeed.ops.adam import DeepSpeedCPUAdam
                self.optimizer = DeepSpeedCPUAdam([self.parameter], adamw_mode=True, **settings)
            self.name = "DeepSpeedCPUAdam"
        except Exception as error:  # no compiler, no such wheel: whatever it is, it is said
            print(f"compare.py: DeepSpeedCPUAdam cannot be built ({error}); torch's fused AdamW instead", file=sys.stderr)
            self.optimizer = torch.optim.AdamW([self.parameter], fused=True, **settings)
            self.name = "torch.optim.AdamW(fused=True)"
        self.whole()  # makes the state

    def update(self):
        began = time.perf_counter()
        self.optimizer.step()
        return time.perf_counter() - began

    def whole(self):
        """Clip, update, publish as bf16, clear gradients."""
        began = time.perf_counter()
        self.torch.nn.utils.clip_grad_norm_([self.parameter], 1.0)
        self.optimizer.step()
        with self.torch.no_grad():
            self.working.copy_(self.parameter)
        self.optimizer.zero_grad(set_to_none=False)
        taken = time.perf_counter() - began
        self.parameter.grad.fill_(1e-3)
        return taken


def measure(arguments):
    """The fastest seconds of every measure."""
    ours = Ours(arguments.build, arguments.millions, arguments.threads)
    table = {name: lambda name=name: ours.seconds(name) for name in MEASURES}
    peer = None if arguments.no_peer else Peer(ours.elements, arguments.threads)
    if peer:
        table.update({"peer_update": peer.update, "peer_whole": peer.whole})
    best = {name: run() for name, run in table.items()}  # a first turn to touch all memory
    for name in best:
        best[name] = float("inf")
    for _ in range(arguments.turns):
        for name, run in table.items():
            # Twice: on a virtual machine memory that nobody has touched for a moment is slow to come back.
            best[name] = min(best[name], run(), run())
    return ours, peer, best


def report(arguments, ours, peer, best):
    copy = min(best["copy"], best["streamed_copy"])
    figures = {
        "elements": ours.elements, "threads": arguments.threads, "turns": arguments.turns,
        "update_gb_per_s": round(ours.bytes / best["update"] * 1e-9, 2),
        "update_of_copy": round(copy / best["update"], 3),
        "redo_cost": round(best["update"] / best["in_place"] - 1, 3),
        "publishing_of_a_pass": round((best["in_place"] - best["unpublished"]) / best["publishing_pass"], 3),
    }
    if peer:
        figures.update({"peer": peer.name, "update_to_peer": round(best["peer_update"] / best["update"], 3),
                        "whole_to_peer": round(best["peer_whole"] / best["whole"], 3)})
    figures["seconds"] = {name: round(seconds, 5) for name, seconds in best.items()}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="build folder, such as build/cpu")
    parser.add_argument("--millions", type=int, default=200, help="of parameters, times 2^20; 36 bytes each with the peer's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--no-peer", action="store_true", help="without PyTorch and DeepSpeed")
    arguments = parser.parse_args()
    print(json.dumps(report(arguments, *measure(arguments))))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
