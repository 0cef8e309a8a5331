"""Builds the Python package: its module by CMake from python/, everything else as setuptools does.

CMAKE_ARGS in the environment goes to CMake. All that is built lies in build/."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = Path("build") / "pip"


class CMakeBuild(build_ext):
    def build_extension(self, extension: Extension) -> None:
        package = Path(self.get_ext_fullpath(extension.name)).resolve().parent
        folder = ROOT / "build" / f"pip-{sys.implementation.cache_tag}"
        configure = ["cmake", "-S", str(ROOT / "python"), "-B", str(folder), f"-DPython_EXECUTABLE={sys.executable}",
                     f"-DROTRNN_PYTHON_OUTPUT={package.parent}"]
        if shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        try:
            import pybind11
            configure.append(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}")
        except ImportError:
            pass  # CMake finds it, or says that it is missing
        subprocess.run(configure + shlex.split(os.environ.get("CMAKE_ARGS", "")), check=True)
        subprocess.run(["cmake", "--build", str(folder), "--parallel", str(os.cpu_count() or 1)], check=True)


def version() -> str:
    found = re.search(r"^project\(rotrnn VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit("setup.py: CMakeLists.txt has no line project(rotrnn VERSION ...)")
    return found.group(1)


os.chdir(ROOT)
BUILD.mkdir(parents=True, exist_ok=True)
setup(
    version=version(),
    packages=["rotrnn", "rotrnn.plain"],
    package_dir={"": "python"},
    package_data={"rotrnn": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("rotrnn._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)}},
    zip_safe=False,
)
