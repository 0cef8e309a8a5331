"""Exported models by `rotrnn.Model` and `rotrnn.Stream` against an evaluator in NumPy, float64."""

import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import rotrnn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))  # last: it has a rotrnn.py
import folded  # noqa: E402

# Float32 through two small blocks against float64.
BOUND = 2e-5


def make(tmp_path, seed=1, **choices):
    path = tmp_path / "model.safetensors"
    folded.random_model(path, seed, **choices)
    return rotrnn.Model(path), folded.Folded(path)


def steps_for(model, count, seed=0):
    rng = np.random.default_rng(seed)
    if model.info.tokens:
        return rng.integers(0, model.info.inputs, count)
    return rng.normal(size=(count, model.info.inputs)).astype(np.float32)


def close(a, b):
    scale = max(1.0, np.abs(b).max())
    assert np.abs(np.asarray(a, np.float64) - b).max() <= BOUND * scale


@pytest.mark.parametrize("pooling", ["mean", "last", "none"])
@pytest.mark.parametrize("kind", ["values", "tokens"])
def test_stream_equals_numpy_at_every_prefix(tmp_path, pooling, kind):
    model, exact = make(tmp_path, pooling=pooling, input=kind)
    x = steps_for(model, 50)
    wanted = exact.logits(x)  # after every step
    for chunk in (1, 7, 50):
        stream = rotrnn.Stream(model)
        got = [stream.push(x[i: i + chunk], each=True) for i in range(0, 50, chunk)]
        close(np.concatenate(got), wanted)
        close(stream.logits(), wanted[-1])
        assert stream.steps == 50


def test_whole_sequences_also_bidirectional(tmp_path):
    model, exact = make(tmp_path, bidirectional=True)
    x = [steps_for(model, n, n) for n in (1, 40, 13)]
    close(model.score(x), np.stack([exact.logits(s)[-1] for s in x]))
    close(model.score(x, threads=1), np.stack([exact.logits(s)[-1] for s in x]))
    assert model.score([]).shape == (0, model.info.outputs)
    with pytest.raises(ValueError, match="score whole sequences"):
        rotrnn.Stream(model)


def test_state_goes_on_in_another_stream(tmp_path):
    model, _ = make(tmp_path)
    x = steps_for(model, 60)
    whole = rotrnn.Stream(model)
    whole.push(x)
    first, second = rotrnn.Stream(model), rotrnn.Stream(model)
    first.push(x[:23])
    second.push(steps_for(model, 5, 9))
    second.restore(first.save())
    second.push(x[23:])
    close(second.logits(), whole.logits().astype(np.float64))
    whole.reset()
    assert whole.steps == 0 and not whole.logits().any()
    with pytest.raises(ValueError, match="not a saved state"):
        second.restore(b"nonsense")


def test_many_streams_at_once(tmp_path):
    model, _ = make(tmp_path)
    x = np.stack([steps_for(model, 9, i) for i in range(30)])
    together = [rotrnn.Stream(model) for _ in range(30)]
    for t in range(9):
        rotrnn.Stream.push_each(together, x[:, t])
    for i, stream in enumerate(together):
        alone = rotrnn.Stream(model)
        alone.push(x[i])
        close(stream.logits(), alone.logits().astype(np.float64))


def test_threads_share_a_model(tmp_path):
    model, exact = make(tmp_path)
    x = steps_for(model, 200)
    wanted, said = exact.logits(x)[-1], {}

    def work(k):
        stream = rotrnn.Stream(model)
        for i in range(0, 200, k + 1):
            stream.push(x[i: i + k + 1])
        said[k] = stream.logits()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 4
    for logits in said.values():
        close(logits, wanted)


def test_text_in_pieces(tmp_path):
    model, exact = make(tmp_path, input="tokens", kind="characters", end_mark=True)
    text = "bean ßΩ 世界😀 é"
    wanted = exact.logits(exact.tokens_of_text(text.encode()))[-1]
    close(model.score([text])[0], wanted)
    stream = rotrnn.Stream(model)
    for byte in text.encode():
        stream.push(bytes([byte]))
    stream.end()
    close(stream.logits(), wanted)
    with pytest.raises(ValueError, match="ended"):
        stream.push("a")


def test_answers(tmp_path):
    model, exact = make(tmp_path)
    x = steps_for(model, 20)
    stream = rotrnn.Stream(model)
    stream.push(x)
    logits = exact.logits(x)[-1]
    wanted = np.exp(logits - logits.max())
    wanted /= wanted.sum()
    close(stream.answer(), wanted)
    close(model.answer(model.score([x]))[0], wanted)
    assert stream.label() == model.classes[int(np.argmax(wanted))]


@pytest.mark.parametrize("wrong, match", [
    (np.zeros((3, 99)), "99"), (np.zeros((2, 2, 2)), "steps of shape"), ("text", "text for a model"),
    (np.array(["a"]), "must be numbers"), (np.full((1, 3), np.nan), "nan")])
def test_wrong_values_leave_the_stream_as_it_was(tmp_path, wrong, match):
    model, _ = make(tmp_path, inputs=3)
    stream = rotrnn.Stream(model)
    stream.push(steps_for(model, 4))
    before = stream.save()
    with pytest.raises(ValueError, match=match):
        stream.push(wrong)
    assert stream.save() == before


def test_wrong_tokens_and_files(tmp_path):
    model, _ = make(tmp_path, input="tokens", inputs=5)
    with pytest.raises(ValueError, match="0 to 4"):
        rotrnn.Stream(model).push([1, 5])
    with pytest.raises(ValueError, match="whole numbers"):
        rotrnn.Stream(model).push([0.5])
    with pytest.raises(RuntimeError, match="No such file"):
        rotrnn.Model(tmp_path / "missing.safetensors")
    (tmp_path / "bad").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    with pytest.raises(RuntimeError, match="bad"):
        rotrnn.Model(tmp_path / "bad")


def test_needs_no_torch(tmp_path):
    make(tmp_path)
    code = ("import sys; sys.modules['torch'] = None; import rotrnn; "
            f"s = rotrnn.Stream({str(tmp_path / 'model.safetensors')!r}); s.push([[0.0] * s.model.info.inputs]); "
            "print(s.steps)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr


def test_the_example_says_what_numpy_says(tmp_path):
    model, exact = make(tmp_path, inputs=2)
    x = steps_for(model, 60)
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python_stream.py"
    text = "\n".join(" ".join(repr(float(v)) for v in row) for row in x)
    done = subprocess.run([sys.executable, str(example), model.file], input=text, capture_output=True, text=True,
                          check=True)
    *said, last = done.stdout.splitlines()
    best = exact.logits(x)
    assert said[-1].split(": ")[1].startswith(model.classes[int(best[-1].argmax())])
    for line in said:  # what it says is the class after that step
        step = int(line.split(":")[0].split()[1])
        name = line.split(": ")[1].rsplit(" (", 1)[0]
        assert best[step - 1][model.classes.index(name)] >= best[step - 1].max() - 1e-4
    assert float(last.split()[-1]) < 1e-4
