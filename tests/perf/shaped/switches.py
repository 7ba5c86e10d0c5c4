"""Each switch of the plan alone: a run with the standard and one with the switch, one after the other, so that a slow
moment of the machine meets both."""

import dataclasses
import statistics

import training

steps = 10
two_a_node = ["parallel.ranks=4", "topology.ranks_per_node=2"]
group = [*two_a_node, "parallel.expert_group=2", "model.router_groups=2"]
halves = ["micro_batch.rows=2"]


@dataclasses.dataclass
class Switch:
    on: list  # settings
    base: list = dataclasses.field(default_factory=list)  # of both runs: what the switch needs to have an effect

    @property
    def name(self):
        return ", ".join(self.on)


switches = [
    Switch(["wire.expert_gather=fp8"]),
    Switch(["compute.dtype=bf16", "wire.dense_gather=bf16", "wire.expert_gather=bf16"]),
    Switch(["wire.expert_gradients=bf16_all_to_all"]),
    Switch(["wire.expert_gradients=fp32_reduce_scatter"], two_a_node),
    Switch(["wire.dense_gradients=bf16_all_to_all"]),
    Switch(["wire.dense_gradients=fp32_reduce_scatter"], two_a_node),
    Switch(["recompute=selective"]),
    Switch(["recompute=none"]),
    Switch(["offload.fraction=0.86"]),
    Switch(["replicas.state=sharded"], ["parallel.replicas=2"]),
    Switch(["collectives.backend=gloo"], two_a_node),
    Switch(["expert_exchange=uneven"], group),
    Switch(["gather_on_compute_lane=true"]),
    Switch(["micro_batch.rows=2"]),
    Switch(["micro_batch.reduce=each"], halves),
    Switch(["keep_gathered=true"]),
    Switch(["dense.reshard=node"]),
    Switch(["dense.reshard=node"], two_a_node),
    Switch(["reuse_embedding=false"]),
    Switch(["norm_in_backward=false"]),
    Switch(["early_release=false"]),
    Switch(["reduce_into_compute_pool=false"]),
    Switch(["rope_cache=per_layer"]),
    Switch(["stream_update=false"]),
]


def change(pair, of, unit, digits):
    """"28.1 → 21.3", or one number where the switch changes nothing that would be seen."""
    off, on = (f"{of(figures) / unit:.{digits}f}" for figures in pair)
    return off if off == on else f"{off} → {on}"


def row(switch, pairs):
    ratio = statistics.median(on["step_ms"] / off["step_ms"] for off, on in pairs)
    off_ms, on_ms = (statistics.median(pair[i]["step_ms"] for pair in pairs) for i in range(2))
    name = f"`{switch.name}`" + (f" (with `{', '.join(switch.base)}`)" if switch.base else "")
    last, mib = pairs[-1], 2**20
    cells = [name, f"{off_ms:.0f} → {on_ms:.0f}", f"{ratio:.2f}", change(last, lambda f: f["between"], 1e6, 1),
             change(last, lambda f: f["inside"], 1e6, 1), change(last, lambda f: f["peak"], mib, 1),
             change(last, lambda f: f["pool"], mib, 1), change(last, lambda f: f["arena"] + f["tables"], mib, 2),
             change(last, lambda f: f["host"], mib, 0)]
    return "| " + " | ".join(cells) + " |"


def measure(runs, arguments):
    chosen = [switch for switch in switches if arguments.only in switch.name]
    if not chosen:
        raise SystemExit(f"no switch has \"{arguments.only}\" in its name: " + "; ".join(s.name for s in switches))
    print(f"Rank 0, {arguments.recipe.name}, two nodes, {runs.network.rate:g} MB/s, "
          f"{arguments.delay_ms:g} ms, {runs.steps} steps, {arguments.pairs} pair(s). Without → with the switch.\n")
    print("| switch | step ms | ratio | MB between nodes | MB in the node | alive at once MiB | pool MiB "
          "| arena, tables MiB | node MiB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for switch in chosen:
        pairs = []
        for _ in range(arguments.pairs):
            settings = [*arguments.set, *switch.base]
            pairs.append([training.figures(runs.train([*settings, *more])) for more in ([], switch.on)])
        print(row(switch, pairs), flush=True)
