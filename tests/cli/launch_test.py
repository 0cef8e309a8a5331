"""Several processes: the same training as one, faults, wrong use, hosts as network namespaces."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]

# Ragged lists, batch norm, dropout.
CONFIG = """
[task]
train = 2000
validation = 101
test = 60
min_length = 5
max_length = 40
max_depth = 3
max_args = 5

[model]
width = 16
state = 16
heads = 4
depth = 3
dropout = 0.1

[training]
steps = 100
batch = 24
log_every = 1
evaluate_every = 50
checkpoint_every = 10
threads = 1
"""

PLACE = ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE"]


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def saved_step(run):
    return json.loads((run / "last/state.json").read_text())["state"]["step"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Launch(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "c.toml").write_text(CONFIG)
        self.environment = {k: v for k, v in os.environ.items() if k not in PLACE}
        self.environment["OMP_WAIT_POLICY"] = "passive"

    def command(self, ranks, *arguments):
        start = [PROGRAM, "launch", "-n", str(ranks), "--"] if ranks > 1 else [PROGRAM]
        return [*start, "train", *map(str, arguments)]

    def train(self, ranks, out, *arguments, code=0):
        done = subprocess.run(
            self.command(ranks, "c.toml", "--out", out, "--timeout", 20, *arguments),
            cwd=self.folder, capture_output=True, text=True, timeout=120, env=self.environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotIn("terminate called", done.stderr)
        return done

    def start(self, *command, **more):
        environment = {**self.environment, **more}
        process = subprocess.Popen(command, cwd=self.folder, text=True, env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def wait_for_step(self, run, step, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                if any(line["step"] >= step for line in lines(self.folder / run)):
                    return
            time.sleep(0.02)
        self.fail(f"{run} did not come to step {step}")

    def same(self, a, b, tolerance=1e-5):
        """The numbers of two runs, except those of the clock."""
        a, b = ([x for x in lines(self.folder / run) if "loss" in x] for run in (a, b))
        self.assertEqual([(x["step"], x["split"]) for x in a], [(x["step"], x["split"]) for x in b])
        for x, y in zip(a, b):
            self.assertLessEqual(abs(x["loss"] - y["loss"]), tolerance * abs(y["loss"]), (x, y))
            for key in ["tokens", "examples", "global_lr"]:
                self.assertEqual(x.get(key), y.get(key), (x, y))
        return max(abs(x["loss"] - y["loss"]) / abs(y["loss"]) for x, y in zip(a, b))


class Equality(Launch):
    def test_ranks_compute_what_one_computes(self):
        self.train(1, "one")
        done = self.train(2, "two")
        self.assertIn("2 ranks share every batch of 24 sequences", done.stderr)
        self.assertIn("test accuracy", done.stdout)
        self.assertEqual(done.stdout.count("test accuracy"), 1)  # rank 0 alone prints
        self.assertEqual(len(list((self.folder / "two").glob("events.out.*"))), 1)  # and writes
        self.same("two", "one")
        self.assertEqual(sum(x["split"] == "train" for x in lines(self.folder / "two")), 100)
        self.train(4, "four")
        self.same("four", "one")

    def test_four_ranks_parts_clipping_weights(self):
        more = ["--set", "training.accumulate=2", "--set", "training.clip=0.5", "--set",
                "training.class_weights=balanced", "--set", "training.steps=30"]
        self.train(1, "one", *more)
        self.train(4, "four", *more)
        self.same("four", "one")

    def test_batches_by_tokens_may_leave_a_rank_without_work(self):
        more = ["--set", "training.batch_tokens=30", "--set", "training.steps=40"]
        self.train(1, "one", *more)
        self.train(3, "three", *more)
        self.same("three", "one")

    def test_layers_that_run_block_by_block(self):
        more = ["--set", "model.layer=s4d", "--set", "training.steps=20"]
        self.train(1, "one", *more)
        self.train(2, "two", *more)
        self.same("two", "one")


class Starters(Launch):
    """What mpirun, srun and torchrun set."""

    def both(self, out, *variables):
        ranks = [self.start(PROGRAM, "train", "c.toml", "--out", out, "--set", "training.steps=10",
                            **v) for v in variables]
        for rank in ranks:
            _, errors = rank.communicate(timeout=60)
            self.assertEqual(rank.returncode, 0, errors)

    def test_variables_of_mpirun_and_srun(self):
        self.train(1, "one", "--set", "training.steps=10")
        port = str(free_port())
        self.both("mpi", *[dict(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="2",
                                OMPI_COMM_WORLD_LOCAL_SIZE="2", MASTER_PORT=port)
                           for rank in (0, 1)])
        self.same("mpi", "one")
        port = str(free_port())
        self.both("slurm", *[dict(SLURM_PROCID=str(rank), SLURM_NTASKS="2",
                                  SLURM_NODELIST="localhost", MASTER_PORT=port)
                             for rank in (0, 1)])
        self.same("slurm", "one")

    def test_torchrun(self):
        if not shutil.which("torchrun"):
            self.skipTest("there is no torchrun")
        self.train(1, "one", "--set", "training.steps=10")
        done = subprocess.run(
            # -r and -t: PyTorch 1.13 cannot read their defaults under Python 3.11.
            ["torchrun", "-r", "0:1", "-t", "0:1", "--no_python", "--nproc_per_node", "2",
             "--master_addr", "127.0.0.1", "--master_port", str(free_port()), PROGRAM, "train",
             "c.toml", "--out", "two", "--set", "training.steps=10"], cwd=self.folder, capture_output=True, text=True, timeout=120,
            env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.same("two", "one")


class Faults(Launch):
    def ranks_of(self, launcher):
        """Process numbers by rank."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == launcher.pid:
                    variables = (entry / "environ").read_bytes().split(b"\0")
                    rank = [v for v in variables if v.startswith(b"RANK=")][0]
                    found[int(rank[5:])] = int(entry.name)
        return found

    def kill_one(self, rank, how):
        run = f"run{rank}{how}"
        process = self.start(*self.command(3, "c.toml", "--out", run, "--timeout", 3,
                                           "--set", "training.steps=100000"))
        self.wait_for_step(run, 30)
        victim = self.ranks_of(process)[rank]
        os.kill(victim, how)
        begin = time.time()
        if how == signal.SIGSTOP:  # the launcher cannot know, the others must
            time.sleep(6)
            os.kill(victim, signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertLess(time.time() - begin, 12)
        self.assertRegex(errors, rf"rotrnn: rank {rank} \(host .*, process {victim}\) ")
        self.assertNotIn("did not end within", errors)
        # From the checkpoint on, with another number of ranks.
        step = saved_step(self.folder / run)
        self.assertGreaterEqual(step, 20)
        self.train(2, run, "--resume", "--set", f"training.steps={step + 5}")
        self.assertEqual(lines(self.folder / run)[-1]["step"], step + 5)

    def test_a_killed_rank_is_named(self):
        self.kill_one(1, signal.SIGKILL)

    def test_rank_zero_is_named(self):
        self.kill_one(0, signal.SIGKILL)

    def test_a_rank_that_hangs_is_named(self):
        self.kill_one(2, signal.SIGSTOP)

    def test_a_signal_stops_all_at_one_step_and_another_number_goes_on(self):
        self.train(1, "unbroken", "--set", "training.steps=400")
        process = self.start(*self.command(2, "c.toml", "--out", "run", "--set",
                                           "training.steps=400"))
        self.wait_for_step("run", 20)
        os.kill(self.ranks_of(process)[1], signal.SIGTERM)  # not the one that writes
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        stopped = int(re.search(r"stopped at step (\d+) and saved", output).group(1))
        self.assertEqual(saved_step(self.folder / "run"), stopped)
        self.assertEqual(lines(self.folder / "run")[-1]["step"], stopped)
        self.train(3, "run", "--resume", "--set", "training.steps=400")
        # 400 steps let rounding grow beyond what 100 do.
        self.same("run", "unbroken", tolerance=1e-3)

    def test_ctrl_c_comes_to_all(self):
        process = self.start(*self.command(2, "c.toml", "--out", "run", "--set",
                                           "training.steps=100000"))
        self.wait_for_step("run", 5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("and saved", output)


class Wrong(Launch):
    def fails(self, *command, code, says, **environment):
        process = self.start(*map(str, command), **environment)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, errors)
        self.assertIn(says, errors)
        self.assertNotIn("terminate called", errors)
        return errors

    def test_use(self):
        self.fails(PROGRAM, "launch", "-n", 2, code=2, says="there is nothing to start")
        self.fails(PROGRAM, "launch", "-n", 2, "--", "eval", "x", code=2,
                   says='"eval" is not for several processes')
        self.fails(PROGRAM, "launch", "-n", 0, "--", "train", code=2, says="--processes")
        errors = self.fails(PROGRAM, "launch", "-n", 2, "--", "train", "c.toml", "--set",
                            "model.widht=8", code=2, says='did you mean "width"?')
        self.assertIn("[rank 1] rotrnn: rank 0 (host", errors)

    def test_a_batch_too_small_to_share(self):
        self.fails(*self.command(4, "c.toml", "--set", "training.batch=6", "--set",
                                 "training.accumulate=2"), code=2,
                   says="6 sequences in 2 parts cannot be shared by 4 ranks")

    def test_variables(self):
        self.fails(PROGRAM, "train", "c.toml", code=2, says="WORLD_SIZE is not", RANK="0")
        self.fails(PROGRAM, "train", "c.toml", code=2, says="ranks count from 0 to 1", RANK="2",
                   WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")

    def test_nobody_there(self):
        place = dict(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        train = [PROGRAM, "train", "c.toml", "--timeout", 1.5]
        self.fails(*train, code=1, says="could not reach rank 0 at 127.0.0.1", RANK="1", **place)
        self.fails(*train, code=1, says="these did not come within 1.5 s: 1", RANK="0", **place)
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            place["MASTER_PORT"] = str(taken.getsockname()[1])
            self.fails(*train, code=1, says="already in use; choose another", RANK="0", **place)

    def test_two_of_one_rank(self):
        place = dict(WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        train = [PROGRAM, "train", "c.toml", "--timeout", "4"]
        first = self.start(*train, RANK="0", **place)
        second = self.start(*train, RANK="1", **place)
        time.sleep(1.5)
        self.fails(*train, code=1, says="two processes are rank 1", RANK="1", **place)
        for process in [first, second]:
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1)
            self.assertIn("these did not come within 4 s: 2", errors)


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)


class Hosts(Launch):
    """Two hosts as network namespaces; needs the right to make them."""

    def setUp(self):
        super().setUp()
        tag = f"rr{os.getpid() % 100000}"
        self.names = [f"{tag}a", f"{tag}b"]
        for name in self.names:
            try:
                done = ip("netns", "add", name, check=False)
            except FileNotFoundError:
                self.skipTest("there is no `ip`: iproute2 is not installed")
            if done.returncode != 0:
                self.skipTest(f"no right to make network namespaces: {done.stderr.strip()}")
            self.addCleanup(ip, "netns", "del", name, check=False)
        done = ip("link", "add", f"{tag}x", "netns", self.names[0], "type", "veth", "peer", "name",
                  f"{tag}y", "netns", self.names[1], check=False)
        if done.returncode != 0:
            self.skipTest(f"no right to make a link: {done.stderr.strip()}")
        self.links = [f"{tag}x", f"{tag}y"]
        for i, (name, link) in enumerate(zip(self.names, self.links)):
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "link", "set", "lo", "up")

    def start_host(self, rank, *arguments):
        place = dict(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="10.77.0.1", MASTER_PORT="29511")
        return self.start("ip", "netns", "exec", self.names[rank], PROGRAM, "train", "c.toml",
                          *map(str, arguments), **place)

    def test_two_hosts_compute_what_one_computes(self):
        self.train(1, "one")
        hosts = [self.start_host(rank, "--out", "two") for rank in (0, 1)]
        for host in hosts:
            _, errors = host.communicate(timeout=60)
            self.assertEqual(host.returncode, 0, errors)
        self.same("two", "one")

    def test_a_cut_network(self):
        run = ["--out", "run", "--timeout", 4, "--set", "training.steps=100000"]
        hosts = [self.start_host(rank, *run) for rank in (0, 1)]
        self.wait_for_step("run", 20)
        ip("-n", self.names[1], "link", "set", self.links[1], "down")
        begin = time.time()
        for host, other in zip(hosts, (1, 0)):
            _, errors = host.communicate(timeout=60)
            self.assertEqual(host.returncode, 1, errors)
            self.assertRegex(errors, rf"rotrnn: rank {other} \(host .*\) has not")
        self.assertLess(time.time() - begin, 4 + 5)
        ip("-n", self.names[1], "link", "set", self.links[1], "up")
        step = saved_step(self.folder / "run")
        run = ["--out", "run", "--resume", "--set", f"training.steps={step + 5}"]
        for host in [self.start_host(rank, *run) for rank in (0, 1)]:
            _, errors = host.communicate(timeout=60)
            self.assertEqual(host.returncode, 0, errors)

    def test_a_short_cut_is_survived(self):
        self.train(1, "one")
        hosts = [self.start_host(rank, "--out", "two", "--timeout", 30) for rank in (0, 1)]
        self.wait_for_step("two", 10)
        ip("-n", self.names[1], "link", "set", self.links[1], "down")
        time.sleep(2)
        ip("-n", self.names[1], "link", "set", self.links[1], "up")
        for host in hosts:
            _, errors = host.communicate(timeout=60)
            self.assertEqual(host.returncode, 0, errors)
        self.same("two", "one")


if __name__ == "__main__":
    unittest.main(verbosity=2)
