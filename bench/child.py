"""Measurements that need a process of their own: `python -m bench.child TASK ARGUMENTS-AS-JSON`.

Resident memory of a process tells of everything that ran in it, so whoever
wants to know what one graph takes starts from a fresh one. The result is one
line of JSON on the output.
"""
from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import bench_memory, machine
from bench.libraries import fg
from bench.timing import Case, Stopwatch, compare

WARMUP_STEPS = 1000


def deep(depth: int, stack_bytes: int = 0) -> dict[str, Any]:
    """Forward, backward and `del` of one deep chain of one-element tensors; in a thread where a stack size is given."""
    if not stack_bytes:
        return _deep(depth)
    threading.stack_size(stack_bytes)
    found: dict[str, Any] = {"error": "the thread ended without a result"}

    def work() -> None:
        found.clear()
        found.update(_deep(depth))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found


def _deep(depth: int) -> dict[str, Any]:
    x, w = bench_memory.leaves(fg, 1)
    bench_memory.chain(x, w, 1000).backward()  # the pool and the allocator have started
    w.grad = x.grad = None
    rss, live, watch = machine.rss_bytes(), fg.memory.live_bytes(), Stopwatch()
    y = bench_memory.chain(x, w, depth)
    forward = watch.elapsed()
    graph_rss, graph_live = machine.rss_bytes(), fg.memory.live_bytes()
    watch = Stopwatch()
    y.backward()
    backward, watch = watch.elapsed(), Stopwatch()
    del y
    deletion = watch.elapsed()
    bench_memory.check_gradient(w, depth)
    return {"forward": forward, "backward": backward, "del": deletion, "live_bytes": graph_live - live,
            "rss_bytes": None if rss is None or graph_rss is None else graph_rss - rss,
            "live_after": fg.memory.live_bytes() - live, "saved_after": fg.memory.saved_bytes()}


def depths(shallow: int, deep: int, repeats: int) -> dict[str, Any]:
    """Time per node of a shallow and of a deep chain, in rounds."""
    def case(depth: int) -> Case:
        def run() -> None:
            x, w = bench_memory.leaves(fg, 1)
            bench_memory.chain(x, w, depth).backward()
        return run

    timings = compare({"shallow": case(shallow), "deep": case(deep)}, repeats=repeats, warmup=0, min_seconds=1.0)
    per_node = {"shallow": timings["shallow"].total.divided(shallow), "deep": timings["deep"].total.divided(deep)}
    ratio = per_node["deep"].ratio(per_node["shallow"])
    return {name: sample.as_dict() for name, sample in per_node.items()} | {"ratio": ratio.as_dict()}


def growth(steps: int) -> dict[str, Any]:
    """Train for many steps; live bytes, Python's objects and resident memory after the first steps and at the end."""
    rng = np.random.default_rng(0)
    inputs, targets = (fg.from_numpy(rng.standard_normal((32, n))) for n in (8, 1))
    parameters = [fg.tensor(0.1 * rng.standard_normal(shape), requires_grad=True) for shape in ((8, 16), (16, 1))]

    def step() -> None:
        error = fg.tanh(inputs @ parameters[0]) @ parameters[1] - targets
        (error * error).mean().backward()
        with fg.no_grad():
            for parameter in parameters:
                parameter.sub_(parameter.grad * 0.01)
                parameter.grad.zero_()

    def read() -> dict[str, Any]:
        gc.collect()
        return {"live_bytes": fg.memory.live_bytes(), "objects": len(gc.get_objects()),
                "blocks": sys.getallocatedblocks(), "rss_bytes": machine.rss_bytes()}

    for _ in range(WARMUP_STEPS):
        step()
    before = read()
    for _ in range(steps):
        step()
    return {"before": before, "after": read()}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"deep": deep, "depths": depths, "growth": growth}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
