"""rotrnn data download against a server of its own, which also misbehaves."""

import gzip
import hashlib
import http.server
import io
import json
import os
import signal
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves self.server.files, with ranges; `cuts` are the bytes after which connections end."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.server.cuts.pop(0) if self.server.cuts and status in (200, 206) else None
        if cut is None:
            self.wfile.write(body)
        elif cut == "stall":
            self.wfile.write(body[:100])
            self.wfile.flush()
            self.server.stop.wait(30)
        else:
            self.wfile.write(body[:cut])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self):
        server, asked = self.server, self.headers.get("Range")
        server.requests.append((self.path, asked))
        if self.path in server.redirects:
            return self.answer(302, {"Location": server.redirects[self.path]})
        if server.statuses:
            return self.answer(server.statuses.pop(0), {})
        body = server.files.get(self.path)
        if body is None:
            return self.answer(404, {}, b"not here")
        tag = '"%s"' % hashlib.md5(body).hexdigest()
        headers = {"ETag": tag} if server.tags else {}
        condition = self.headers.get("If-Range")
        if not asked or not server.ranges or condition not in (None, tag):
            return self.answer(200, headers, body)
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(body):
            return self.answer(416, {"Content-Range": f"bytes */{len(body)}"})
        headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        self.answer(206, headers, body[start:])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.redirects, self.requests = {}, {}, []
        self.cuts, self.statuses, self.ranges, self.tags = [], [], True, True
        self.stop = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


def tar_gz(entries):
    """A tar.gz of (name or TarInfo, bytes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for entry, data in entries:
            info = entry if isinstance(entry, tarfile.TarInfo) else tarfile.TarInfo(entry)
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Data(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.stop.set)
        noise = os.urandom(300_000)  # so that the archive is as large
        self.reviews = {"aclImdb/train/pos/0_9.txt": b"good", "aclImdb/train/neg/0_1.txt": noise}
        self.archive = tar_gz(self.reviews.items())
        self.server.files["/a.tar.gz"] = self.archive
        self.url = self.server.url("/a.tar.gz")
        self.file = self.folder / "data/aclImdb_v1.tar.gz"
        self.record = self.folder / "data/aclImdb_v1.tar.gz.sha256"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.lower().endswith("_proxy")}

    def run_program(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "data", *map(str, arguments)], cwd=self.folder,
                              capture_output=True, text=True, timeout=120, env=self.environment)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        self.assertNotIn("terminate called", done.stderr)
        return done

    def download(self, *arguments, task="text", url=None):
        done = self.run_program("download", task, "--url", url or self.url, "--json", *arguments)
        return json.loads(done.stdout)

    def fails(self, *arguments, says, code=1):
        done = self.run_program(*arguments, code=code)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        return done

    def names(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                      if not path.is_dir())


class Download(Data):
    def test_whole(self):
        got = self.download()
        sha256 = hashlib.sha256(self.archive).hexdigest()
        self.assertEqual(got["path"], "data/text")
        self.assertEqual(got["files"], [{"file": "data/aclImdb_v1.tar.gz", "url": self.url,
                                         "bytes": len(self.archive), "sha256": sha256,
                                         "fetched": True, "resumed": 0}])
        self.assertEqual({name: (self.folder / "data/text" / name).read_bytes()
                          for name in self.reviews}, self.reviews)
        self.assertEqual(self.record.read_text(), f"{sha256}  aclImdb_v1.tar.gz\n")
        self.assertEqual(self.names(), ["data/aclImdb_v1.tar.gz.sha256"] + sorted(
            "data/text/" + name for name in self.reviews))  # no archive, no part
        # Again: it is there, and nothing is asked for.
        self.server.requests.clear()
        self.assertEqual(self.download()["files"], [])
        self.assertEqual(self.server.requests, [])
        (self.folder / "data/text/aclImdb/train/pos/0_9.txt").unlink()
        self.assertEqual(self.download("--overwrite", "--keep-archive")["unpacked"], True)
        self.assertTrue((self.folder / "data/text/aclImdb/train/pos/0_9.txt").exists())
        self.assertEqual(self.file.read_bytes(), self.archive)

    def test_text_output_and_redirect(self):
        self.server.redirects["/moved"] = self.url
        done = self.run_program("download", "text", "--url", self.server.url("/moved"))
        self.assertIn("fetched", done.stdout)
        self.assertIn("--set task.path=data/text", done.stdout)
        self.assertNotIn("\033", done.stdout + done.stderr)

    def test_archive_as_it_is(self):
        got = self.download("--no-unpack")
        self.assertEqual((got["path"], got["unpacked"]), ("data/aclImdb_v1.tar.gz", False))
        self.assertEqual(self.file.read_bytes(), self.archive)
        self.assertFalse((self.folder / "data/text").exists())
        self.server.requests.clear()
        self.assertFalse(self.download("--no-unpack")["files"][0]["fetched"])
        self.assertEqual(self.server.requests, [])

    def test_cut_connections_resume(self):
        self.server.cuts = [100_000, 50_000, 0]
        got = self.download("--no-unpack")
        self.assertEqual(self.file.read_bytes(), self.archive)
        self.assertEqual(got["files"][0]["sha256"], hashlib.sha256(self.archive).hexdigest())
        self.assertEqual([asked for _, asked in self.server.requests],
                         [None, "bytes=100000-", "bytes=150000-", "bytes=150000-"])
        self.assertEqual(self.names(), ["data/aclImdb_v1.tar.gz", "data/aclImdb_v1.tar.gz.sha256"])

    def test_cut_for_good_then_run_again(self):
        self.server.cuts = [100_000]
        self.fails("download", "text", "--url", self.url, "--retries", 0,
                   says=["100000 bytes are kept", "again"])
        self.assertFalse(self.file.exists())
        self.assertEqual((self.folder / "data/aclImdb_v1.tar.gz.part").read_bytes(),
                         self.archive[:100_000])
        got = self.download("--no-unpack")
        self.assertEqual(got["files"][0]["resumed"], 100_000)
        self.assertEqual(self.server.requests[-1][1], "bytes=100000-")
        self.assertEqual(self.file.read_bytes(), self.archive)

    def test_changed_between_attempts(self):
        self.server.cuts = [100_000]
        self.fails("download", "text", "--url", self.url, "--retries", 0,
                   says="bytes are kept")
        changed = tar_gz([("new", os.urandom(400_000))])
        self.server.files["/a.tar.gz"] = changed
        got = self.download("--no-unpack")
        self.assertEqual(got["files"][0]["resumed"], 0)
        self.assertEqual(self.file.read_bytes(), changed)  # and no mixture of two

    def test_without_ranges_or_tags(self):
        for ranges, tags in [(False, True), (True, False), (False, False)]:
            self.server.ranges, self.server.tags = ranges, tags
            self.server.cuts = [100_000, 70_000]
            self.download("--no-unpack")
            self.assertEqual(self.file.read_bytes(), self.archive)
            self.file.unlink()

    def test_whole_part_of_a_killed_run(self):
        self.server.cuts = [100_000]
        self.fails("download", "text", "--url", self.url, "--retries", 0,
                   says="bytes are kept")
        (self.folder / "data/aclImdb_v1.tar.gz.part").write_bytes(self.archive)
        self.assertEqual(self.download("--no-unpack")["files"][0]["resumed"], len(self.archive))
        self.assertEqual(self.server.requests[-1][1], f"bytes={len(self.archive)}-")
        # One that is too long cannot be of that file.
        self.file.unlink()
        self.server.cuts = [100_000]
        self.fails("download", "text", "--url", self.url, "--retries", 0,
                   says="bytes are kept")
        (self.folder / "data/aclImdb_v1.tar.gz.part").write_bytes(self.archive + b"more")
        self.download("--no-unpack")
        self.assertEqual(self.file.read_bytes(), self.archive)

    def test_changed_on_disk(self):
        self.download("--no-unpack")
        damaged = bytearray(self.archive)
        damaged[1000] ^= 1
        self.file.write_bytes(damaged)
        self.server.requests.clear()
        self.fails("download", "text", "--url", self.url,
                   says=["aclImdb_v1.tar.gz: has changed since it was fetched",
                         hashlib.sha256(damaged).hexdigest(),
                         hashlib.sha256(self.archive).hexdigest(), "remove"])
        self.assertEqual(self.server.requests, [])
        self.assertEqual(self.file.read_bytes(), damaged)
        self.file.unlink()  # what it says to do
        self.download("--no-unpack")
        self.assertEqual(self.file.read_bytes(), self.archive)

    def test_changed_on_the_server(self):
        self.download()
        self.server.files["/a.tar.gz"] = tar_gz([("other", b"content")])
        before = self.names()
        self.fails("download", "text", "--url", self.url, "--overwrite",
                   says=["the server's file has changed", "Remove the record"])
        self.assertEqual(self.names(), before)
        self.record.unlink()
        self.download("--overwrite")
        self.assertTrue((self.folder / "data/text/other").exists())

    def test_put_there_by_hand(self):
        self.file.parent.mkdir()
        self.file.write_bytes(self.archive)
        self.assertFalse(self.download()["files"][0]["fetched"])
        self.assertEqual(self.server.requests, [])
        self.assertTrue(self.file.exists())  # it is the user's
        self.assertIn(hashlib.sha256(self.archive).hexdigest(), self.record.read_text())

    def test_server_errors(self):
        self.server.statuses = [503, 500]
        self.download("--no-unpack")
        self.assertEqual(len(self.server.requests), 3)
        self.fails("download", "text", "--out", "b", "--url", self.server.url("/missing"),
                   says=["/missing: the server answers with status 404", "--url"])
        self.assertEqual(len(self.server.requests), 4)  # asking again would not help
        self.assertFalse([name for name in self.names() if name.startswith("b/")])

    def test_refused_connection(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        self.fails("download", "text", "--url", f"http://127.0.0.1:{port}/a.tar.gz",
                   says=["Failed to connect", "check the address"])
        self.assertEqual(self.names(), [])

    def test_only_http(self):
        (self.folder / "secret").write_text("x")
        url = f"file://{self.folder}/secret"
        self.fails("download", "text", "--url", url, code=2, says="only those are fetched")
        self.server.redirects["/moved"] = url
        self.fails("download", "text", "--url", self.server.url("/moved"), says="/moved: ")
        self.assertEqual(self.names(), ["secret"])
        self.server.redirects["/circle"] = "/circle"
        self.fails("download", "text", "--url", self.server.url("/circle"), says="redirects")

    def test_cannot_write(self):
        (self.folder / "data").write_text("a file in the way")
        self.fails("download", "text", "--url", self.url, says="data")
        self.assertEqual((self.folder / "data").read_text(), "a file in the way")

    def test_disk_full(self):
        limited = ["sh", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$0" "$@"']  # of 512 or 1024 bytes
        done = subprocess.run([*limited, PROGRAM, "data", "download", "text", "--url", self.url],
                              cwd=self.folder, capture_output=True, text=True, timeout=60,
                              env=self.environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("aclImdb_v1.tar.gz.part: cannot write: File too large", done.stderr)
        self.assertFalse(self.file.exists())
        self.download("--no-unpack")
        self.assertEqual(self.file.read_bytes(), self.archive)

    def test_interrupt(self):
        self.server.cuts = ["stall"]
        program = subprocess.Popen([PROGRAM, "data", "download", "text", "--url", self.url],
                                   cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                   env=self.environment)
        part = self.folder / "data/aclImdb_v1.tar.gz.part"
        for _ in range(200):
            if part.exists() and part.stat().st_size == 100:
                break
            time.sleep(0.05)
        # Another process keeps away from it.
        self.fails("download", "text", "--url", self.url, says="another process")
        program.send_signal(signal.SIGINT)
        _, error = program.communicate(timeout=30)
        self.assertEqual(program.returncode, 1)
        self.assertIn("stopped; 100 bytes are kept", error)
        self.assertEqual(self.download("--no-unpack")["files"][0]["resumed"], 100)
        self.assertEqual(self.file.read_bytes(), self.archive)

    def test_several_files(self):
        names = ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                 "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
        for name in names:
            self.server.files["/mnist/" + name] = gzip.compress(name.encode())
        got = self.download(task="mnist", url=self.server.url("/mnist/"))
        self.assertEqual(got["path"], "data/mnist")
        self.assertEqual(len(got["files"]), 4)
        for name in names:
            self.assertEqual(gzip.decompress((self.folder / "data/mnist" / name).read_bytes()),
                             name.encode())

    def test_a_part_of_a_shared_archive(self):
        top = "lra_release/lra_release/"
        self.server.files["/lra"] = tar_gz([(top + "listops-1000/basic_train.tsv", b"a"),
                                            (top + "pathfinder32/x/imgs/0/sample_0.png", b"b"),
                                            (top + "pathfinder128/x/imgs/0/sample_0.png", b"c")])
        self.download(task="listops", url=self.server.url("/lra"))
        self.download(task="pathfinder", url=self.server.url("/lra"))
        self.assertEqual(self.names(), sorted([
            "data/lra_release.tar.gz", "data/lra_release.tar.gz.sha256",
            f"data/listops/{top}listops-1000/basic_train.tsv",
            f"data/pathfinder/{top}pathfinder32/x/imgs/0/sample_0.png"]))
        self.assertEqual(len(self.server.requests), 1)
        self.fails("download", "retrieval", "--url", self.server.url("/lra"),
                   says="there is no tsv_data in it")
        self.assertFalse((self.folder / "data/retrieval").exists())

    def test_list(self):
        text = self.run_program("list").stdout
        for part in ["aclImdb_v1.tar.gz", "cifar-10-binary.tar.gz", "speech_commands_v0.02.tar.gz",
                     "speech_commands_v0.01.tar.gz", "lra_release.gz", "mnist", "rotrnn data make"]:
            self.assertIn(part, text)
        listed = json.loads(self.run_program("list", "--json").stdout)
        self.assertIn("speech_commands_v1", [row["task"] for row in listed["downloads"]])
        own = {row["name"] for row in listed["tasks"] if row["own"]}
        self.assertLessEqual({"audio_folder", "csv"}, own)
        self.assertNotIn("text", own)
        self.fails("download", "txet", code=2, says='did you mean "text"?')
        self.fails("download", "weather", code=2, says="speech_commands")
        self.fails("download", code=2, says="task")


class HostileArchives(Data):
    def refused(self, archive, *says):
        self.server.files["/a.tar.gz"] = archive
        self.fails("download", "text", "--url", self.url, says=["aclImdb_v1.tar.gz: ", *says])
        # The archive itself is kept, beside it nothing.
        self.assertEqual(self.names(), ["data/aclImdb_v1.tar.gz", "data/aclImdb_v1.tar.gz.sha256"])
        self.assertFalse((self.folder / "data/text").exists())
        self.file.unlink()
        self.record.unlink()

    def test_names_that_lead_out(self):
        for name in ["../evil", "a/../../evil", f"{self.folder}/evil"]:
            self.refused(tar_gz([("fine", b"x"), (name, b"evil")]), f"entry {name}: ",
                         "nothing was unpacked")

    def test_links_and_devices(self):
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "../.."
        self.refused(tar_gz([(link, b""), ("link/evil", b"evil")]), "entry link: ")
        link.linkname = "/etc/passwd"
        self.refused(tar_gz([(link, b"")]), "entry link: is a link to /etc/passwd")
        device = tarfile.TarInfo("null")
        device.type = tarfile.CHRTYPE
        self.refused(tar_gz([("fine", b"x"), (device, b"")]), "entry null: ")

    def test_cut_and_damaged(self):
        self.refused(self.archive[:200_000], "aclImdb/train/neg/0_1.txt: ", "cut off or damaged")
        damaged = bytearray(self.archive)
        damaged[-5] ^= 1
        self.refused(bytes(damaged), "damaged gzip data")
        self.refused(b"<html>Please log in</html>", "not a whole tar or zip archive")
        self.refused(b"", "not a whole tar or zip archive")


if __name__ == "__main__":
    unittest.main(verbosity=2)
