"""`python -m eval.fetch`, from a server on this machine."""

import functools
import hashlib
import http.server
import io
import os
import subprocess
import tarfile
import threading
import zipfile

import pytest

from eval import fetch
from eval.benchmarks.config import DownloadConfig
from eval.benchmarks.load import load_benchmark
from pairscale.command.compose import FOLDER, compose
from pairscale.errors import ConfigError, InputError, WriteError

PAIRS = '{"sentence_good": "The cats sleep.", "sentence_bad": "The cats sleeps."}\n'
FILES = {"agreement.jsonl": PAIRS, "deep/b.jsonl": PAIRS * 2}


def sha256sum(files):
    """Return the digest by its definition: of what sha256sum prints for the files."""
    lines = [f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def tarred(files, mode="w:gz", links=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name in links:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def served(tmp_path):
    """Return a folder, and the address of a server of its files."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def request_of(served, tmp_path):
    """Return a function from an archive's name and contents to the configuration of a command that fetches it."""

    def configured(name, data, folder="", sha256=None):
        (served[0] / name).write_bytes(data)
        config = compose("fetch", ["benchmark=blimp", f"paths.data={tmp_path}/data"])
        config.benchmark.download = DownloadConfig(
            page="https://example.org",
            licence="CC0",
            address=f"{served[1]}/{name}",
            folder=folder,
            sha256=sha256 or sha256sum(FILES),
        )
        return config

    return configured


def below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def within(folder):
    return {f"{folder}{name}": text for name, text in FILES.items()}


INSIDE = within("top/data/") | {"top/README.md": "no", "top/.git": ""}
ARCHIVES = {
    "flat.zip": (zipped(FILES), ""),
    "mac.zip": (zipped(within("d/") | {"__MACOSX/d/._x": "", "d/.DS_Store": ""}), ""),
    "top.tar.gz": (tarred(INSIDE, links=("top/data/link",)), "data"),
    "top.tar.xz": (tarred(INSIDE, "w:xz"), "data"),
    "several.tar": (tarred(within("data/") | {"b/c": ""}, "w"), "data"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_files_of_an_archive_are_where_the_benchmark_looks_for_them(request_of, tmp_path, capsys, name):
    data, folder = ARCHIVES[name]
    config = request_of(name, data, folder)
    fetch.run(config)
    assert below(tmp_path / "data") == sorted(["blimp/SOURCE.txt", *(f"blimp/{name}" for name in FILES)])
    assert (tmp_path / "data/blimp/deep/b.jsonl").read_text() == PAIRS * 2
    about = (tmp_path / "data/blimp/SOURCE.txt").read_text()
    assert all(text in about for text in ("licence: CC0\n", f"{name}\n", sha256sum(FILES)))
    assert "CC0" in capsys.readouterr().out
    found = load_benchmark(compose("eval", ["benchmark=blimp", f"paths.data={tmp_path}/data"]).benchmark)
    assert found.pairs["good"].tolist() == ["The cats sleep."]
    before = os.stat(tmp_path / "data/blimp/agreement.jsonl")
    fetch.run(config)  # again
    assert "already" in capsys.readouterr().out
    assert os.stat(tmp_path / "data/blimp/agreement.jsonl") == before


def test_a_single_file_keeps_its_name_and_the_digest_is_that_of_sha256sum(request_of, tmp_path):
    fetch.run(request_of("pairs.jsonl", PAIRS.encode(), sha256=sha256sum({"pairs.jsonl": PAIRS})))
    folder = tmp_path / "data/blimp"
    assert (folder / "pairs.jsonl").read_text() == PAIRS
    shell = "find . -type f ! -name SOURCE.txt -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    printed = subprocess.run(shell, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == fetch.digest_of(folder) == sha256sum({"pairs.jsonl": PAIRS})


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("changed.zip", zipped(FILES | {"agreement.jsonl": PAIRS * 3}), "changed"),
        ("more.zip", zipped(FILES | {"more.jsonl": PAIRS}), "changed"),
        ("cut.zip", zipped(FILES)[:-30], "unpacked"),
        ("cut.tar.gz", tarred(FILES)[:-30], "unpacked"),
        ("damaged.zip", zipped(FILES).replace(b"PK\3\4", b"PK\3\5", 1), "unpacked"),
        ("out.zip", zipped(FILES | {"../out.jsonl": PAIRS}), r"'\.\./out\.jsonl'"),
        ("root.tar.gz", tarred(FILES | {"/tmp/out.jsonl": PAIRS}), "'/tmp/out.jsonl'"),
        ("windows.zip", zipped(FILES | {"a\\..\\out.jsonl": PAIRS}), "unsafe"),
    ],
)
def test_damaged_changed_and_dangerous_downloads_are_refused_and_leave_nothing(request_of, tmp_path, name, data, fault):
    with pytest.raises(InputError, match=fault) as error:
        fetch.run(request_of(name, data))
    assert "\n" not in str(error.value)
    assert below(tmp_path / "data") == []
    fetch.run(request_of(name, (zipped if name.endswith("zip") else tarred)(FILES)))  # again, from a mended address
    assert "blimp/SOURCE.txt" in below(tmp_path / "data")


@pytest.mark.parametrize("name", ["large.zip", "bomb.tar.gz"])
def test_what_is_too_large_is_not_downloaded_or_unpacked(request_of, tmp_path, monkeypatch, name):
    zeros = {"a.jsonl": "0" * 100_000}
    monkeypatch.setattr(fetch, "MOST_BYTES", 50 if name == "large.zip" else 50_000)
    with pytest.raises(InputError, match=r"more than 50 bytes|100,000 bytes.* 50,000"):
        fetch.run(request_of(name, zipped(FILES) if name == "large.zip" else tarred(zeros)))
    assert below(tmp_path / "data") == []


def test_an_interrupted_download_can_be_repeated(request_of, tmp_path, monkeypatch):
    config = request_of("a.zip", zipped(FILES))

    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "_unpack", stop)
        with pytest.raises(KeyboardInterrupt):
            fetch.run(config)
    assert below(tmp_path / "data") == []
    fetch.run(config)
    assert "blimp/agreement.jsonl" in below(tmp_path / "data")


def test_other_files_are_never_replaced(request_of, tmp_path):
    (tmp_path / "data/blimp").mkdir(parents=True)
    config = request_of("a.zip", zipped(FILES))
    (tmp_path / "data/blimp/mine.jsonl").write_text(PAIRS)
    with pytest.raises(InputError, match="don't belong to benchmark=blimp"):
        fetch.run(config)
    assert below(tmp_path / "data") == ["blimp/mine.jsonl"]
    (tmp_path / "data/blimp/mine.jsonl").unlink()
    fetch.run(config)  # into an empty folder
    assert "blimp/agreement.jsonl" in below(tmp_path / "data")


def test_without_a_network_an_address_or_a_folder_the_message_says_what_to_do(request_of, tmp_path):
    config = request_of("a.zip", b"", folder="inside")
    config.benchmark.download.address = "http://127.0.0.1:1/a.zip"  # nobody listens there
    with pytest.raises(InputError, match=rf"127\.0\.0\.1:1/a\.zip .*folder inside into {tmp_path}/data/blimp"):
        fetch.run(config)
    gone = request_of("b.zip", b"")
    gone.benchmark.download.address += "x"
    with pytest.raises(InputError, match="404"):
        fetch.run(gone)
    with pytest.raises(InputError, match=rf"osf\.io/ryjfm.*{tmp_path}/data/babylm/full_eval/supplement_filtered"):
        fetch.run(compose("fetch", ["benchmark=blimp_supplement", f"paths.data={tmp_path}/data"]))
    with pytest.raises(ConfigError, match="PAIRSCALE_DATA"):
        fetch.run(compose("fetch", ["benchmark=blimp", "paths.data=null"]))
    for benchmark, reason in (("toy", "no published files"), ("multiblimp", "jumelet/multiblimp")):
        with pytest.raises(ConfigError, match=reason):
            fetch.run(compose("fetch", [f"benchmark={benchmark}", f"paths.data={tmp_path}"]))
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(WriteError):
        fetch.run(compose("fetch", ["benchmark=blimp", f"paths.data={blocked}/data"]))
    with pytest.raises(InputError, match=r"eval\.fetch benchmark=blimp"):
        load_benchmark(compose("eval", ["benchmark=blimp", f"paths.data={tmp_path}/none"]).benchmark)


def test_addresses_and_digests_go_together_and_each_benchmark_of_files_has_a_source(tmp_path):
    with pytest.raises(ConfigError, match="go together"):
        compose("fetch", ["benchmark=blimp", "benchmark.download.sha256=null"])
    with pytest.raises(ConfigError, match=r"download\.address"):
        compose("fetch", ["benchmark=blimp", "benchmark.download.address=file:///etc/passwd"])
    names = {path.stem for path in (FOLDER / "benchmark").glob("*.yaml")}
    configs = [compose("fetch", [f"benchmark={name}", f"paths.data={tmp_path}"]).benchmark for name in sorted(names)]
    without = {config.name for config in configs if config.download is None}
    on_the_hub = {"hanzi", "multiblimp"}
    assert without == {"choices", "generated", "local", "ratings", "toy"} | on_the_hub
    assert all(config.path.startswith(str(tmp_path)) for config in configs if config.download)


def test_the_shared_copies_are_those_of_the_pinned_addresses(real_data, capsys):
    for name in ("blimp", "climp", "role", "neg", "cprag"):
        fetch.run(compose("fetch", [f"benchmark={name}", f"paths.data={real_data}"]))
        assert "already" in capsys.readouterr().out
