"""Event files of TensorBoard, decoded by protobuf and a CRC of their own, against metrics.jsonl."""

import importlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]
SOURCE = Path(os.environ["ROTRNN_SOURCE"])

TINY = """
[task]
train = 300
validation = 50
test = 60
min_length = 5
max_length = 30
max_depth = 3
max_args = 4

[model]
width = 8
state = 12
heads = 4
depth = 2

[training]
steps = 30
batch = 10
log_every = 4
evaluate_every = 10
checkpoint_every = 8
norms_every = 15
threads = 1
"""


def crc32c(data):
    """By its definition, bit by bit: the remainder for the polynomial 0x1EDC6F41, reflected."""
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if (crc ^ (byte >> bit)) & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    """The payloads of a TFRecord file, which must be whole."""
    at = 0
    while at < len(content):
        length, check = struct.unpack_from("<QI", content, at)
        assert check == masked(crc32c(content[at:at + 8])), f"CRC of the length at {at}"
        data = content[at + 12:at + 12 + length]
        assert len(data) == length, f"torn record at {at}"
        (check,) = struct.unpack_from("<I", content, at + 12 + length)
        assert check == masked(crc32c(data)), f"CRC of the data at {at}"
        yield data
        at += 16 + length


def wire_fields(data):
    """Number, wire type and value of the fields of a message, by the documented wire format."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 2: None, 5: 4}[key & 7]
            size = varint() if size is None else size
            value = data[at:at + size]
            assert len(value) == size
            at += size
        yield key >> 3, key & 7, value


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def expected(lines):
    """Points that the lines of metrics.jsonl must give: (tag, step, value)."""
    points = []
    for line in lines:
        step, split = line.pop("step"), line.pop("split")
        for name, value in line.items():
            if name in ("confusion", "classes", "layers"):  # not curves
                continue
            if isinstance(value, list):
                points += [(f"{split}/{name}/layer{i}", step, float32(v))
                           for i, v in enumerate(value)]
            else:
                points.append((f"{split}/{name}", step, float32(value)))
    return points


def tensorboard_view(files):
    """What TensorBoard keeps of the files of a run: a session that starts at a step purges what was
    there from that step on."""
    points = []
    for events in files:
        for event in events:
            if event.WhichOneof("what") == "session_log" and event.session_log.status == 1:
                points = [p for p in points if p[1] < event.step]
            points += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
    return points


class EventFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.generated = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.generated.cleanup)
        subprocess.run(["protoc", f"--proto_path={SOURCE}/tests/cli",
                        f"--python_out={cls.generated.name}", "event.proto"], check=True)
        sys.path.insert(0, cls.generated.name)
        cls.proto = importlib.import_module("event_pb2")

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "tiny.toml").write_text(TINY)

    def train(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "train", *map(str, arguments), "--quiet"], cwd=self.folder,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)

    def files(self, run):
        return sorted((self.folder / run).glob("events.out.tfevents.*"))

    def events(self, path):
        found = []
        for data in records(path.read_bytes()):
            event = self.proto.Event()
            event.ParseFromString(data)
            self.assertEqual(event.SerializeToString(), data)  # nothing unknown, nothing else
            found.append(event)
        return found

    def lines(self, run):
        return [json.loads(line) for line in
                (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def test_a_run_is_in_one_file_as_in_metrics(self):
        before = time.time()
        self.train("tiny.toml", "--out", "run")
        after = time.time()
        files = self.files("run")
        self.assertEqual(len(files), 1)
        self.assertRegex(files[0].name, rf"^events\.out\.tfevents\.\d{{10}}\..+\.\d+$")
        events = self.events(files[0])
        self.assertEqual(events[0].file_version, "brain.Event:2")
        self.assertEqual((events[1].session_log.status, events[1].step), (1, 0))
        points = [(v.tag, e.step, v.simple_value) for e in events for v in e.summary.value]
        self.assertEqual(points, expected(self.lines("run")))
        tags = {tag for tag, _, _ in points}
        self.assertLessEqual({"train/loss", "train/gradient_norm", "train/global_lr",
                              "validation/accuracy", "test/accuracy", "norms/whole/layer0",
                              "norms/head/layer1"}, tags)
        times = [e.wall_time for e in events]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], before - 0.01)
        self.assertLessEqual(times[-1], after + 0.01)
        # The same without protobuf: field numbers and wire types as TensorBoard's own messages.
        for data, event in zip(records(files[0].read_bytes()), events):
            fields = list(wire_fields(data))
            self.assertEqual(fields[0], (1, 1, struct.pack("<d", event.wall_time)))
            if event.step != 0:
                self.assertEqual(fields.pop(1), (2, 0, event.step))
            self.assertIn([f[:2] for f in fields[1:]], [[(3, 2)], [(5, 2)], [(7, 2)]])

    def test_a_resumed_run_gives_the_curves_of_metrics(self):
        # Stopped in its middle; the last checkpoint is older than the last line.
        process = subprocess.Popen([PROGRAM, "train", "tiny.toml", "--out", "run", "--quiet",
                                    "--set", "training.steps=100000"], cwd=self.folder,
                                   stderr=subprocess.DEVNULL)
        metrics = self.folder / "run/metrics.jsonl"
        while not metrics.exists() or metrics.read_text().count("\n") < 40:
            time.sleep(0.01)
        process.kill()
        process.wait()
        killed = self.lines("run")[-1]["step"]
        self.train("--resume", "--out", "run", "--set",
                   f"training.steps={killed + 50}")
        files = self.files("run")
        self.assertEqual(len(files), 2)
        self.assertEqual(self.events(files[1])[0].file_version, "brain.Event:2")
        start = self.events(files[1])[1]
        self.assertEqual(start.session_log.status, 1)
        self.assertEqual((start.step - 1) % 8, 0)  # behind a checkpoint, which has a line
        self.assertLessEqual(start.step, killed + 1)
        view = tensorboard_view([self.events(path) for path in files])
        self.assertEqual(view, expected(self.lines("run")))

    def test_it_can_be_switched_off_and_replaced(self):
        self.train("tiny.toml", "--out", "run", "--set", "training.tensorboard=false")
        self.assertEqual(self.files("run"), [])
        # It may change when a run goes on.
        self.train("--resume", "--out", "run", "--set", "training.tensorboard=true",
                   "--set", "training.steps=35")
        first = self.files("run")
        self.assertEqual(len(first), 1)
        self.train("tiny.toml", "--out", "run", "--overwrite")
        second = self.files("run")
        self.assertEqual(len(second), 1)
        self.assertEqual(tensorboard_view([self.events(second[0])]), expected(self.lines("run")))


if __name__ == "__main__":
    unittest.main()
