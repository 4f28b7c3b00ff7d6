"""Build of the compiled modules; everything declarative is in pyproject.toml."""
import sys
from pathlib import Path

from setuptools import setup

# A PEP 517 front end does not put the project's folder on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from tools.build import BuildExtensions, extensions

setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
