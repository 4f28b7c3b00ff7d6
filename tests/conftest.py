"""What holds for every test: fixed seeds, and that it leaves nothing behind.

After each test the buffers, nodes and saved bytes that it made are gone again, and the thread's modes are as they were.
A test that must leave something says why: ``@pytest.mark.leaves_memory(reason="...")``.
"""
import gc
import random
import sys

import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _node, _storage

BEFORE = pytest.StashKey()
FAILED = pytest.StashKey()
MODULES = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "leaves_memory(reason): the test may leave buffers or nodes alive, and says why")


def pytest_collection_modifyitems(items):
    for item in items:
        marker = item.get_closest_marker("leaves_memory")
        if marker is not None and not marker.kwargs.get("reason"):
            raise pytest.UsageError(f"{item.nodeid}: leaves_memory needs a reason=")


def freeze_modules(session):
    """Take what imports made out of the collector's sight: a full collection then takes a millisecond, not fifty."""
    if session.stash.get(MODULES, 0) != len(sys.modules):
        gc.collect()
        gc.freeze()
        session.stash[MODULES] = len(sys.modules)


def alive():
    gc.collect()
    return {
        "live buffers": _storage.live_buffers(),
        "live bytes": fg.memory.live_bytes(),
        "nodes": _node.node_count(),
        "saved bytes": fg.memory.saved_bytes(),
    }


def modes():
    return {
        "grad enabled": fg.is_grad_enabled(),
        "inference mode": fg.autograd.is_inference_mode_enabled(),
        "strict": fg.autograd.is_strict(),
        "default dtype": fg.get_default_dtype(),
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    freeze_modules(item.session)
    item.stash[BEFORE] = (alive(), modes())
    random.seed(20)
    np.random.seed(20)  # noqa: NPY002
    fg.manual_seed(20)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed or report.skipped:
        item.stash[FAILED] = True       # the exception holds the test's frames, and these its tensors
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    result = yield
    before, modes_before = item.stash[BEFORE]
    assert modes() == modes_before, "the test left a mode of this thread changed"
    if not item.stash.get(FAILED, False) and item.get_closest_marker("leaves_memory") is None:
        item.funcargs.clear()           # pytest keeps the fixtures' values a little longer
        after = alive()
        left = {what: after[what] - n for what, n in before.items() if after[what] > n}
        assert not left, f"the test left behind {left}"
    return result


@pytest.fixture
def rng():
    """A NumPy generator with a fixed seed."""
    return np.random.default_rng(20)


@pytest.fixture
def torch():
    """PyTorch, or the test is skipped."""
    return pytest.importorskip("torch")
