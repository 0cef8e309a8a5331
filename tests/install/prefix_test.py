"""An installation into a fresh prefix, and clients that are built from nothing else; then once more, moved elsewhere."""

import os
import re
import shutil
import unittest

from common import BUILD, SOURCE, VERSION, WORK, assert_no_paths, files_of, fresh, own_manifest, run

FOLDED = os.environ["ROTRNN_FOLDED"]
HERE = SOURCE / "tests" / "install"
TORCH = os.environ["ROTRNN_TORCH"] == "1"  # whether the build found LibTorch


class Prefix(unittest.TestCase):
    """`home` has the prefix and, beside it, what is built from it."""

    @classmethod
    def setUpClass(cls):
        fresh(WORK)
        cls.home = WORK / "first"
        with own_manifest():
            run("cmake", "--install", BUILD, "--prefix", cls.home / "prefix")
        cls.libraries = next((cls.home / "prefix").rglob("librotrnn_runtime.so")).parent.relative_to(cls.home)

    def build(self, name, *settings):
        """Builds tests/install/NAME from the installed tree; returns the folder of the programs."""
        prefix, out = self.home / "prefix", self.home / name
        environment = {k: v for k, v in os.environ.items() if k not in ("CMAKE_PREFIX_PATH", "rotrnn_DIR")}
        # The compiler's cache sees the two homes as one, for LibTorch takes half a minute a file.
        environment |= {"CCACHE_BASEDIR": str(self.home), "CCACHE_NOHASHDIR": "true"}
        if shutil.which("ccache"):
            settings = (*settings, "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        run("cmake", "-G", "Ninja", "-S", HERE / name, "-B", out, "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DEXAMPLES={prefix / 'share/doc/rotrnn/examples'}",
            f"-DVERSION={VERSION}", *settings, env=environment)
        run("cmake", "--build", out, env=environment)
        return out

    def streams(self, program, **environment):
        run("python3", SOURCE / "tests/runtime/example_test.py", program, FOLDED, env=os.environ | environment)

    def check_clients(self):
        out = self.build("runtime", "-DWHOLE=ON")
        self.streams(out / "stream")
        self.streams(out / "stream_c")
        self.streams(out / "stream_static")
        self.assertNotIn("rotrnn", run("ldd", out / "stream_static").replace(str(out), ""))
        self.streams(self.build("c") / "stream_c")
        self.check_pkg_config()
        out = self.build("engine")
        self.assertRegex(run(out / "layer"), "gamma_log +8 gradients")
        self.assertRegex(run(out / "train"), r"step 150  loss 0\.[0-4]")
        if TORCH:
            self.assertRegex(run(self.build("libtorch") / "torch_layer"), r"\[1500, 1\] loss 0\.[0-9]+")

    def check_pkg_config(self):
        libraries = self.home / self.libraries
        environment = os.environ | {"PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "rotrnn-runtime", env=environment).split()
        self.assertEqual(run("pkg-config", "--modversion", "rotrnn-runtime", env=environment).strip(), VERSION)
        program = self.home / "plain"
        run("cc", "-std=c99", "-Wall", "-Werror", self.home / "prefix/share/doc/rotrnn/examples/stream.c", *flags,
            "-o", program)
        self.streams(program, LD_LIBRARY_PATH=str(libraries))

    def check_program(self):
        program = self.home / "prefix/bin/rotrnn"
        self.assertTrue(run(program, "--version").startswith(f"rotrnn {VERSION}\n"))
        configs = self.home / "prefix/share/rotrnn/configs"
        self.assertEqual({p.relative_to(configs) for p in configs.rglob("*.toml")},
                         {p.relative_to(SOURCE / "configs") for p in (SOURCE / "configs").rglob("*.toml")})
        self.assertIn("53194", run(program, "info", configs / "quickstart.toml", "--json"))

    def check_headers(self):
        """What an installed header includes of ours is installed."""
        include = self.home / "prefix/include"
        headers = {str(path.relative_to(include)) for path in files_of(include)}
        for name in ("network/single_layer.h", "torch/modules.h", "training/trainer.h", "runtime/c_api.h", "runtime/stream.h", "version.h"):
            self.assertIn("rotrnn/" + name, headers)
        for name in headers:
            for wanted in re.findall(r'#include "(.+)"', (include / name).read_text()):
                self.assertIn(wanted, headers, f"which {name} includes")

    def test_fresh_and_moved(self):
        assert_no_paths(self.home / "prefix", BUILD, SOURCE, WORK)
        self.check_headers()
        self.check_program()
        self.check_clients()
        # The clients are not moved: what they were linked with is gone.
        moved = WORK / "second" / "deeper"
        moved.mkdir(parents=True)
        shutil.move(self.home / "prefix", moved / "prefix")
        self.__class__.home = moved
        self.check_program()
        self.check_clients()


if __name__ == "__main__":
    unittest.main()
