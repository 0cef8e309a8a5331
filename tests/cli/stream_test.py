"""`rotrnn stream`, `bench stream` and `bench score` from outside, against NumPy."""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]
SOURCE = Path(os.environ["ROTRNN_SOURCE"])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/golden"))

import folded  # noqa: E402
import numpy as np  # noqa: E402


def wav(samples, rate=16000, channels=1, length=None):
    """A WAV file of 16 bits; `length` stands in the header instead of the true one."""
    data = np.asarray(samples, "<i2").tobytes()
    fmt = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    size = len(data) if length is None else length
    return b"RIFF" + struct.pack("<I", 0xffffffff) + b"WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + \
        struct.pack("<I", size) + data


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.rng = np.random.default_rng(1)

    def model(self, **choices):
        self.path = str(self.folder / "model.safetensors")
        folded.random_model(self.path, 7, **choices)
        return folded.Folded(self.path)

    def run_program(self, *arguments, stdin=b"", code=0):
        result = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        return result

    def stream(self, stdin, *options, code=0):
        """The predictions, the final one, and the summary."""
        result = self.run_program("stream", self.path, "--json", *options, stdin=stdin, code=code)
        if code != 0:
            return result.stderr.decode()
        lines = [json.loads(line) for line in result.stdout.decode().splitlines()]
        self.assertTrue(lines[-1].pop("summary"))
        self.assertTrue(lines[-2].pop("final"))
        return lines[:-2], lines[-2], lines[-1]

    def check(self, line, model, rows, step=None):
        """A line against the logits of all steps."""
        want = model.answer(rows[(line["step"] if step is None else step) - 1][None])[0]
        if "values" in line:
            np.testing.assert_allclose(line["values"], want, rtol=1e-4, atol=1e-4)
            return
        classes = model.model["classes"]
        self.assertAlmostEqual(line["probability"], want.max(), delta=1e-4)
        self.assertAlmostEqual(want[classes.index(line["label"])], want.max(), delta=1e-4)
        for name, probability in line.get("probabilities", {}).items():
            self.assertAlmostEqual(probability, want[classes.index(name)], delta=1e-4)


class Inputs(Case):
    def test_wav_as_arecord_writes_it(self):
        model = self.model(rate=16000)
        samples = self.rng.integers(-32768, 32768, 900)
        rows = model.logits(samples[:, None] / 32768)
        for length in (None, 0xffffffff, 0x80000000, 0):
            lines, final, summary = self.stream(wav(samples, length=length), "--all")
            self.assertEqual(final["step"], 900)
            self.assertAlmostEqual(final["seconds"], 900 / 16000)
            self.assertEqual(len(final["probabilities"]), 4)
            for line in lines + [final]:
                self.check(line, model, rows)
            self.assertEqual(summary["steps"], 900)
        # A line for every change, and only for those.
        top = rows.argmax(1)
        changes = [0] + [t for t in range(1, 900) if top[t] != top[t - 1]]
        self.assertEqual([line["step"] - 1 for line in lines], changes)

    def test_raw_samples(self):
        model = self.model(rate=8000)
        s16 = self.rng.integers(-32768, 32768, 200).astype("<i2")
        f32 = self.rng.normal(size=200).astype("<f4")
        u8 = self.rng.integers(0, 256, 200).astype(np.uint8)
        for name, data, values in (("s16", s16, s16 / 32768), ("f32", f32, f32), ("u8", u8, (u8 - 128.0) / 128),
                                   ("auto", s16, s16 / 32768)):
            lines, final, _ = self.stream(data.tobytes(), "--format", name)
            for line in lines + [final]:
                self.check(line, model, model.logits(np.asarray(values, float)[:, None]))
        self.assertIn("inside a step", self.stream(b"abc", "--format", "s16", code=1))
        self.assertIn("nan", self.stream(struct.pack("<2f", 1, np.nan), "--format", "f32", code=1).lower())

    def test_channels_of_wav(self):
        model = self.model(rate=16000)
        stereo = self.rng.integers(-3000, 3000, (50, 2))
        _, final, _ = self.stream(wav(stereo, channels=2))
        self.check(final, model, model.logits(stereo.mean(1, keepdims=True) / 32768))
        model = self.model(rate=16000, inputs=2)
        _, final, _ = self.stream(wav(stereo, channels=2))
        self.check(final, model, model.logits(stereo / 32768))
        self.assertIn("3 channels, the model takes 2", self.stream(wav(np.zeros((9, 3)), channels=3), code=1))
        error = self.stream(wav([1, 2, 3], rate=44100), code=1)
        self.assertIn("44100 samples per second, the model was trained on 16000", error)
        self.assertIn("ffmpeg", error)
        self.assertIn("not the beginning of a WAV", self.stream(b"not a wav file", "--format", "wav", code=1))

    def test_layers_of_channels(self):
        s4d = dict(rate=16000, system="channel", norm="affine", activation="exact_glu")
        samples = self.rng.integers(-32768, 32768, 400)
        for choices in (s4d, dict(s4d, rank=True, b=True), dict(s4d, rank=True, b=True, liquid="kb", degree=3)):
            model = self.model(**choices)
            lines, final, _ = self.stream(wav(samples))
            for line in lines + [final]:
                self.check(line, model, model.logits(samples[:, None] / 32768))
            said = self.run_program("info", self.path).stdout.decode()
            self.assertIn("5 complex states per channel", said)
            self.assertEqual("products of 3 inputs" in said, "degree" in choices)
            said = json.loads(self.run_program("info", self.path, "--json").stdout)
            self.assertEqual((said["system"], said["degree"]), ("channel", choices.get("degree", 1)))
            self.assertTrue(said["streams"])

    def test_csv(self):
        model = self.model(inputs=3, names=["a", "b", "c"])
        values = self.rng.normal(size=(40, 3))
        rows = model.logits(values)
        plain = "".join(",".join(map(repr, row)) + "\n" for row in values.tolist())
        named = "when;c;a;b\r\n" + "".join(f"x;{c!r};{a!r};{b!r}\r\n" for a, b, c in values.tolist())
        quoted = '"a","b","c"\n' + plain.rstrip("\n")
        for text in (plain, named, quoted, "\ufeffa,b,c\n" + plain, plain.replace("\n", "\n\n")):
            lines, final, _ = self.stream(text.encode())
            self.assertEqual(final["step"], 40)
            for line in lines + [final]:
                self.check(line, model, rows)
        for text, part in (("1,2,3\n4,5\n", "standard input:2: 2 columns, expected 3"),
                           ("1,2,3\n4,x,6\n", "standard input:2: column 2"),
                           ("a,b\n1,2\n", 'standard input:1: there is no column "c"'),
                           ("1,2,nan\n", "standard input:1: column 3"),
                           ("1,2\n", "standard input:1: 2 columns, expected 3")):
            self.assertIn(part, self.stream(text.encode(), "--format", "csv", code=1))
        self.assertIn("longer than", self.stream(b"1," * 2000000, "--format", "csv", code=1))

    def test_text(self):
        text = "ab é Ω 世界 😀 unknown".encode()
        for kind in ("characters", "bytes"):
            model = self.model(kind=kind, end_mark=True)
            rows = model.logits(model.tokens_of_text(text))
            lines, final, _ = self.stream(text, "--chunk", 3)
            for line in lines:
                self.check(line, model, rows)
            self.check(final, model, rows, step=len(rows))  # with the end mark
        self.model(kind="characters", end_mark=True)
        self.assertIn("UTF-8", self.stream(b"ab\xff", code=1))
        self.assertIn("inside a character", self.stream("aΩ".encode()[:-1], code=1))

    def test_tokens(self):
        model = self.model(input="tokens", inputs=9, pooling="none", start=True)
        tokens = self.rng.integers(0, 9, 60)
        text = " ".join(map(str, tokens[:30])) + "\n\n" + ",".join(map(str, tokens[30:]))
        lines, final, _ = self.stream(text.encode())
        for line in lines + [final]:
            self.check(line, model, model.logits(tokens))
        self.assertIn('standard input:2: "9" is not a token', self.stream(b"1 2\n3 9\n", code=1))
        self.assertIn('"1.5" is not a token', self.stream(b"1.5", code=1))

    def test_values_and_forecasts(self):
        model = self.model(target="values", outputs=2)
        values = self.rng.normal(size=(30, 1))
        text = "\n".join(map(repr, values.ravel().tolist())).encode()
        lines, final, _ = self.stream(text)
        self.assertEqual(lines, [])
        self.check(final, model, model.logits(values))
        lines, _, _ = self.stream(text, "--every", 7)
        self.assertEqual([line["step"] for line in lines], [7, 14, 21, 28])
        for line in lines:
            self.check(line, model, model.logits(values))
        model = self.model(target="values", outputs=3, horizon=3, pooling="none")
        _, final, _ = self.stream(text)
        self.check(final, model, model.logits(values))
        self.assertIn("+3:", self.run_program("stream", self.path, stdin=text).stdout.decode())

    def test_every_second_sample(self):
        model = self.model(keep_every=2, rate=100)
        values = self.rng.normal(size=(31, 1))
        text = "\n".join(map(repr, values.ravel().tolist())).encode()
        lines, final, _ = self.stream(text, "--chunk", 3)
        self.assertEqual(final["step"], 31)
        for line in lines + [final]:
            self.assertEqual(line["step"] % 2, 1)
            self.check(line, model, model.logits(values), step=line["step"] // 2 + 1)


class Behaviour(Case):
    def test_predictions_come_before_the_input_ends(self):
        self.model(rate=16000)
        data = wav(self.rng.integers(-3000, 3000, 200), length=0xffffffff)
        program = subprocess.Popen([PROGRAM, "stream", self.path, "--json", "--every", "10"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        watch = threading.Timer(30, program.kill)  # one that does not end fails instead of waiting for ever
        watch.start()
        self.addCleanup(watch.cancel)
        for part in (data[:5], data[5:41], data[41:44 + 21]):
            program.stdin.write(part)
            program.stdin.flush()
            time.sleep(0.02)
        self.assertEqual(json.loads(program.stdout.readline())["step"], 10)
        program.stdin.write(data[44 + 21:44 + 41])
        program.stdin.flush()
        self.assertEqual(json.loads(program.stdout.readline())["step"], 20)
        # Ctrl-C is the end of the input, also while the program waits for more of it.
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in program.stdout.read().decode().splitlines()]
        program.stdin.close()
        self.assertEqual(program.wait(10), 0)
        self.assertEqual(rest[0]["final"], True)
        self.assertEqual(rest[0]["step"], 20)
        self.assertEqual(rest[1]["steps"], 20)
        program.stdout.close()
        program.stderr.close()

    def test_what_is_said_does_not_depend_on_chunks(self):
        self.model(pooling="none", inputs=2)
        text = "\n".join(f"{a!r},{b!r}" for a, b in self.rng.normal(size=(300, 2)).tolist()).encode()
        said = {chunk: self.stream(text, "--chunk", chunk)[0] for chunk in (1, 7, 256)}
        self.assertGreater(len(said[1]), 10)
        for chunk in (7, 256):
            self.assertEqual([(x["step"], x["label"]) for x in said[1]], [(x["step"], x["label"]) for x in said[chunk]])

    def test_options(self):
        model = self.model()
        values = self.rng.normal(size=(50, 1))
        text = "\n".join(map(repr, values.ravel().tolist())).encode()
        file = self.folder / "input.csv"
        file.write_bytes(text)
        _, final, summary = self.stream(b"", file, "--limit", 20, "--top", 3)
        self.check(final, model, model.logits(values))
        self.assertEqual((final["step"], summary["steps"], len(final["probabilities"])), (20, 20, 3))
        for key in ("pushes", "push_us", "step_us", "steps_per_second", "load_ms", "stream_bytes"):
            self.assertIn(key, summary)
        for key in ("push_us", "step_us"):
            times = summary[key]
            self.assertTrue(0 < times["p50"] <= times["p99"] <= times["max"])
        people = self.run_program("stream", self.path, "-", "--all", stdin=text)
        last = people.stdout.decode().splitlines()[-1].split("\t")
        self.assertEqual((last[0], len(last)), ("end step 50", 1 + 2 * 4))
        self.assertIn("50 steps", people.stderr.decode())
        self.assertIn("for this stream", people.stderr.decode())

    def test_segments_are_sequences_of_their_own(self):
        model = self.model(keep_every=2, rate=100)
        values = self.rng.normal(size=(50, 1))
        text = "\n".join(map(repr, values.ravel().tolist())).encode()
        for chunk in (1, 7, 256):
            lines, final, summary = self.stream(text, "--segment", 21, "--chunk", chunk)
            self.assertEqual([line["step"] for line in lines + [final]], [21, 42, 50])
            for line, begin in zip(lines + [final], (0, 21, 42)):
                rows = model.logits(values[begin:line["step"]])
                self.check(line, model, rows, step=len(rows))
            self.assertEqual(summary["steps"], 50)
        lines, _, _ = self.stream(text, "--segment", 21, "--every", 5)
        self.assertEqual([line["step"] for line in lines], [5, 15, 21, 30, 40, 42, 45])
        said = self.run_program("stream", self.path, "--segment", 25, stdin=text).stdout.decode()
        self.assertEqual([line.split("\t")[0] for line in said.splitlines()], ["0.250 s", "0.500 s"])
        model = self.model(input="tokens", inputs=9, end_mark=True)
        lines, final, _ = self.stream(b"1 2 3 4 5 6 7", "--segment", 3)
        for line, tokens in zip(lines + [final], ([1, 2, 3], [4, 5, 6], [7])):
            rows = model.logits(np.array(tokens + [folded.END]))
            self.check(line, model, rows, step=len(rows))
        self.model(kind="characters")
        self.assertIn("--segment is for sound", self.stream(b"abc", "--segment", 2, code=2))

    def test_packed_sound_says_how_to_unpack_it(self):
        self.model(rate=16000)
        for begin in (b"fLaC", b"OggS", b"ID3", b"FORM"):
            said = self.stream(begin + bytes(2000), code=1)
            self.assertIn("ffmpeg", said)
            self.assertIn("-ar 16000", said)

    def test_wrong_use(self):
        self.model()
        run = self.folder / "run"
        run.mkdir()
        (run / "config.toml").write_text("")

        def fails(code, part, *arguments, stdin=b""):
            result = self.run_program("stream", *arguments, stdin=stdin, code=code)
            self.assertIn(part, result.stderr.decode())
            self.assertEqual(result.stderr.decode().count("\n"), 1, result.stderr.decode())

        fails(2, "export it first", run)
        fails(1, "nowhere", self.folder / "nowhere")
        fails(1, "input.csv: No such file", self.path, "input.csv")
        fails(1, "ended before a step", self.path)
        fails(2, "--format tokens: this model takes values", self.path, "--format", "tokens")
        fails(2, "--format bytes: this model takes values", self.path, "--format", "bytes")
        (self.folder / "text").write_text("not a model, but a text that is long enough to be read")
        fails(1, str(self.folder / "text"), self.folder / "text")
        self.run_program("stream", code=2)
        self.run_program("stream", self.path, "--chunk", 0, code=2)
        self.model(bidirectional=True)
        fails(2, "bidirectional", self.path)
        self.model(inputs=2)
        fails(1, "--format", self.path, stdin=b"\0\1\2\3\4\5\6\7\0\1\2\3")
        self.model(input="tokens", inputs=5)
        fails(2, "--format wav: this model takes token numbers", self.path, "--format", "wav")

    def bench(self, what, *options):
        return json.loads(self.run_program("bench", what, self.path, *options, "--json").stdout)

    def test_benches(self):
        s4 = dict(system="channel", norm="affine", activation="exact_glu", rank=True, b=True)
        for choices in ({}, dict(input="tokens", inputs=5), dict(per_step=True, max_length=30), s4):
            self.model(**choices)
            out = self.bench("stream", "--samples", 200, "--streams", 50)
            self.assertTrue(0 < out["push_us"]["p50"] <= out["push_us"]["p99"] <= out["push_us"]["max"])
            for key in ("steps_per_second_by_1", "steps_per_second_by_256", "bound_us", "fraction_of_bound",
                        "read_bytes_per_second", "load_ms", "stream_bytes", "streams_one_by_one_steps_per_second"):
                self.assertGreater(out[key], 0)
            self.assertEqual("streams_together_steps_per_second" in out, "input" not in choices)
            self.run_program("bench", "stream", self.path, "--samples", 200)
        for choices in (dict(bidirectional=True, towers=2), dict(input="tokens", inputs=5), s4):
            self.model(**choices)
            out = self.bench("score", "--batch", 2, "--length", 100)
            self.assertGreater(out["steps_per_second"], 0)
            self.run_program("bench", "score", self.path, "--length", 100)
        self.run_program("bench", "stream", self.path + "x", code=1)


if __name__ == "__main__":
    unittest.main()
