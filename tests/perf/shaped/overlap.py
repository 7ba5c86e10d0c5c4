"""How well communication hides behind computation: the step that a run takes against the step that the simulated
executor makes of the same plan, from durations of its operations that were measured one at a time. Rows enough that the
cable is slow (some 16 MB/s): what the kernel and gloo do for a transfer, they do on the cores that compute."""

import statistics

import training

steps = 12
rows = "data.rows_per_step=64"
transfers = ("gather", "reduce", "exchange")
most = 1.10


def alone(plan):
    """Milliseconds of computation and of communication, each operation by itself."""
    busy = plan["time"]["busy_ms"]
    return busy["compute"], sum(busy[lane] for lane in transfers)


def measure_alone(runs, settings):
    return runs.train([*settings, "check.measure_operations=true"])


def balance(runs, settings):
    """A cable with which communication takes as long as computation."""
    run = measure_alone(runs, settings)
    compute, transfer = alone(runs.plan(run, run))
    runs.network.limit(min(100, runs.network.rate * transfer / compute))


def one(runs, settings):
    measured, run = measure_alone(runs, settings), runs.train(settings)
    plan, seen = runs.plan(run, measured), training.figures(run)
    simulated = plan["time"]["plan_ms"]
    compute, transfer = alone(plan)
    print(f"alone      computation {compute:.1f} ms, communication {transfer:.1f} ms ({transfer / compute:.2f} of it), "
          f"all {sum(plan['time']['busy_ms'].values()):.1f} ms")
    print(f"simulated  step {simulated:.1f} ms, exposed communication {plan['time']['exposed_communication_ms']:.1f} ms")
    print(f"measured   step {seen['step_ms']:.1f} ms, exposed communication {seen['exposed_ms']:.1f} ms; waits for "
          f"updates {seen['update_wait_ms']:.1f}, for batches {seen['data_wait_ms']:.1f} ms")
    print(f"ratio      {seen['step_ms'] / simulated:.3f}\n", flush=True)
    return seen["step_ms"] / simulated


def measure(runs, arguments):
    settings = [rows, *arguments.set]
    if not arguments.mbytes_per_second:
        balance(runs, settings)
    print(f"Rank 0, {arguments.recipe.name}, two nodes, {runs.network.rate:.0f} MB/s, {arguments.delay_ms:g} ms, "
          f"{runs.steps} steps, {arguments.pairs} pair(s).\n", flush=True)
    median = statistics.median(one(runs, settings) for _ in range(arguments.pairs))
    print(f"median ratio {median:.3f}: {'reached' if median <= most else 'NOT reached'} (at most {most:.2f})")
