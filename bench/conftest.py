"""pytest-benchmark over the same workloads as `python -m bench`.

Every `bench_*.py` has a function `workloads()`; each of its entries becomes
one benchmark per installed library and phase, in one group per workload and
phase. pytest-benchmark runs them one after the other: for ratios on a busy
machine use `python -m bench --compare`, which alternates.
"""
from __future__ import annotations

import pytest

from bench.libraries import PHASES, cases

ROUNDS = 20


def pytest_generate_tests(metafunc):
    """Fill in what `time_phase` times: a workload's case for one library, and one of its phases."""
    if "time_phase" not in metafunc.fixturenames:
        return
    found = [(workload.name, library, phase, case)
             for workload in metafunc.module.workloads()
             for library, case in cases(workload, peers=True).items()
             for phase in (PHASES[:1] if library == "numpy" else PHASES[:2])]
    metafunc.parametrize(
        ("case", "phase", "group"),
        [(case, phase, f"{name} {phase}") for name, _, phase, case in found],
        ids=[f"{name}-{phase}-{library}" for name, library, phase, _ in found],
    )


@pytest.fixture
def time_phase(benchmark, case, phase, group):
    """Return a function that times one phase; the phases before it are pytest-benchmark's setup."""
    benchmark.group = group

    def started():
        steps = case()
        for _ in range(1 + PHASES.index(phase)):  # a case opens with its setup
            next(steps)
        return (steps,), {}

    return lambda: benchmark.pedantic(next, setup=started, rounds=ROUNDS, warmup_rounds=1)
