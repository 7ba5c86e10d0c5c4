"""A run over the two nodes of a network, and what its metrics say."""

import json
import statistics
import subprocess

warm_steps = 2  # left out of medians: the first steps meet cold memory
standard = ["validation.every_steps=0", "checkpoint.every_steps=0", 'sample.prompt=""']


def arguments_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Training:
    """Where and how runs are made. `folder` holds the dataset and the run directories."""

    def __init__(self, build, recipe, network, folder, steps):
        self.build, self.recipe, self.network, self.folder, self.steps = build, recipe, network, folder, steps
        self.runs = 0

    def train(self, settings):
        """Runs all steps on both nodes and returns the run directory."""
        self.runs += 1
        run = self.folder / f"run{self.runs}"
        nodes = f"{self.network.address(0)}:4700,{self.network.address(1)}"
        common = [self.build / "ganymede", "train", self.recipe, "--run", run, "--steps", self.steps, "--nodes", nodes,
                  *arguments_of([*standard, f"data.path={self.folder / 'data'}", *settings])]
        started, logs = [], []
        try:
            for node in range(2):
                logs.append((self.folder / f"output{self.runs}.{node}").open("w+"))
                command = [*self.network.inside(node), *common, "--node", node]
                started.append(subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                                stdout=logs[node], stderr=subprocess.STDOUT))
            codes = [process.wait(timeout=600) for process in started]
        finally:
            for process in started:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
            texts = []
            for log in logs:
                log.seek(0)
                texts.append(log.read())
                log.close()
        if any(codes):
            raise SystemExit(f"The run with {' '.join(settings)} ended with {codes}:\n" + "\n".join(texts))
        return run

    def plan(self, run, measured):
        """What the simulated executor makes of the plan of a run, with durations that another has measured."""
        command = [self.build / "ganymede", "plan", run / "config.toml", "--measured", measured / "operations.0.json",
                   "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def metrics_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def median(lines, of):
    return statistics.median(of(line) for line in lines[warm_steps:])


def figures(run):
    """Medians over the steps of rank 0 (milliseconds), bytes of its last step."""
    lines = metrics_of(run)
    memory = lines[-1]["memory"]
    return {"step_ms": median(lines, lambda line: line["step_ms"]),
            "exposed_ms": median(lines, lambda line: line["exposed_communication_ms"]),
            "update_wait_ms": median(lines, lambda line: line["waits"]["update"]),
            "data_wait_ms": median(lines, lambda line: line["waits"]["data"]),
            "between": sum(line["bytes_between_nodes"] for line in lines[-1]["traffic"]),
            "inside": sum(line["bytes_inside_node"] for line in lines[-1]["traffic"]),
            "peak": memory["device_measured_peak"], "pool": memory["pool"], "arena": memory["arena"],
            "tables": memory["rotary_tables"], "host": memory["host_used"]}
