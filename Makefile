# make test     everything needed, in an environment of its own, then the checks and the tests
# make bench    everything needed, then the benchmarks; arguments in BENCH_ARGS, as in make bench BENCH_ARGS=--small
# make peers    adds what --compare compares with (PyTorch and HIPS autograd)
# make sanitize the tests under the address sanitizer, with the expensive invariants compiled in
# make stubs    writes the stubs anew, after names or signatures have changed
# make clean    removes all of it
#
# PYTHON is the interpreter to use; FASTGRAD_DEBUG=1 and the other variables of tools/build.py count here too.

PYTHON ?= python3
VENV ?= .venv
BENCH_ARGS ?=
PYTEST_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Compiles what has changed since the last time, nothing if nothing has.
COMPILE := $(BIN)/python setup.py --quiet build_ext --inplace
PYTESTS := $(BIN)/python -m pytest --doctest-modules $(PYTEST_ARGS) tests src/fastgrad
# Another interpreter is another environment: the stamp's name says which one made it.
VERSION := $(shell $(PYTHON) -c "import sys; print('{}.{}'.format(*sys.version_info))" 2>/dev/null)
MADE := $(VENV)/.made-$(VERSION)

.PHONY: test lint stubs bench peers sanitize clean
.NOTPARALLEL:

test: $(VENV)/.test lint
	$(COMPILE)
	$(PYTESTS)

# cython-lint looks for pycodestyle on the path.
lint: $(VENV)/.test
	$(BIN)/ruff check
	PATH="$(BIN):$$PATH" cython-lint src
	$(BIN)/mypy

stubs: $(VENV)/.test
	$(COMPILE)
	$(BIN)/python -m tools.stubs

# Where these two variables are set, they make NumPy's matrix products use kernels made for another processor.
bench: $(VENV)/.bench
	$(COMPILE)
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python -m bench $(BENCH_ARGS)

peers: $(VENV)/.peers

# The interpreter is not instrumented, so the sanitizer has to be loaded before it.
sanitize: $(VENV)/.test
	FASTGRAD_DEBUG=1 FASTGRAD_SANITIZE=address $(COMPILE)
	LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc $(PYTESTS)

$(MADE):
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10))" \
		|| { echo "fastgrad needs Python 3.10 or newer, as in: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.test $(VENV)/.bench $(VENV)/.peers: $(VENV)/.%: $(MADE) pyproject.toml
	$(PIP) --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/fastgrad/_fused.h bench/results
	rm -rf .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tools tests bench -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete
