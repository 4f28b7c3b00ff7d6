"""fastgrad's measurements: `python -m bench` is the main job, `pytest bench` the pytest-benchmark versions.

Every library runs on one thread, so the environment is set before anything can import NumPy.
"""
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"
