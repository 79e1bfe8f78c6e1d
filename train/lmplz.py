"""Build KenLM's programs, which n-gram models (model=ngram) need. This takes a minute or two.

`lmplz` estimates an n-gram model, and `build_binary` converts it to a file that can be queried in place. `python -m
train.lmplz` builds both from KenLM's source package, whose digest is checked, unless they exist already. They are
installed in the active virtual environment or, without one, in your cache folder. No wheel contains a working lmplz.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pairscale import as_typed
from pairscale.console import say
from pairscale.errors import ConfigError, RunError
from pairscale.files import sha256_file

VERSION = "0.3.0"  # version of the source package `kenlm`
SHA256 = "c4628bb9fb63c8a6f9240035b8b037385cfc404cb72e933cf48878291edac1e8"  # digest of its archive
PROGRAMS = ("lmplz", "build_binary")
DEBIAN = (
    "g++ make cmake libboost-program-options-dev libboost-system-dev libboost-thread-dev libboost-test-dev "
    "zlib1g-dev libbz2-dev liblzma-dev"
)


@dataclass(frozen=True)
class Programs:
    """The paths of KenLM's programs. Their version is known only if pairscale built them."""

    lmplz: Path
    build_binary: Path
    version: str | None

    def describe(self) -> dict[str, str | None]:
        """Return the manifest entry for a run that used these programs."""
        return {"version": self.version, "digest": sha256_file(self.lmplz)}


def build_folder() -> Path:
    """Return the folder in which `python -m train.lmplz` installs the programs."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / f"kenlm-{VERSION}"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "pairscale" / f"kenlm-{VERSION}"


def find_programs(configured: str | None = None) -> Programs:
    """Find lmplz and build_binary. Raises ConfigError if one of them is missing.

    lmplz is the `configured` path if there is one, or else the first on the PATH or in `build_folder`. build_binary is
    looked for next to lmplz first.
    """
    built = build_folder()
    lmplz = _program("lmplz", None, built) if configured is None else _program(os.path.expanduser(configured), None)
    if lmplz is None:
        place = f"neither on the PATH nor in {built}" if configured is None else f"not at model.lmplz={configured}"
        raise ConfigError(f"model=ngram: KenLM's lmplz is {place}. Run `python -m train.lmplz` to build it.")
    binary = _program("build_binary", lmplz.parent, None, built)
    if binary is None:
        raise ConfigError(
            f"model=ngram: KenLM's build_binary is neither next to {lmplz} nor on the PATH. Run "
            "`python -m train.lmplz` to build both programs."
        )
    return Programs(lmplz, binary, VERSION if lmplz.parent == built.resolve() else None)


def _program(name: str, *folders: Path | None) -> Path | None:
    """Return the first program with this name in the given folders (None: on the PATH), or None if there is none."""
    found = (shutil.which(name, path=None if folder is None else str(folder)) for folder in folders)
    return next((Path(path).resolve() for path in found if path), None)


def build() -> Path:
    """Download, build and install both programs, and return their folder. Raises RunError if a step fails."""
    folder = build_folder()
    with tempfile.TemporaryDirectory(prefix="kenlm-") as name:
        place = Path(name)
        say(f"Downloading the source package kenlm {VERSION}.")
        requirements = place / "requirements.txt"
        requirements.write_text(f"kenlm=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        run_program([*pip, "--no-deps", "--no-binary", "kenlm", "--dest", str(place), "-r", str(requirements)])
        with tarfile.open(place / f"kenlm-{VERSION}.tar.gz") as archive:
            # Not passed as an argument, because Python before 3.11.4 (such as Debian 12's) has no filters.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(place)
        say("Building lmplz and build_binary. This takes a minute or two.")
        configure = f"cmake -S kenlm-{VERSION} -B build -DCMAKE_BUILD_TYPE=Release -DKENLM_MAX_ORDER=7"
        make = f"cmake --build build --parallel {os.cpu_count() or 1} --target {' '.join(PROGRAMS)}"
        try:
            for command in (configure, make):
                run_program(command.split(), place)
        except RunError as error:
            raise RunError(f"{error} The build needs some packages. On Debian, run: apt-get install {DEBIAN}") from None
        folder.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            # Moved into place at once, because another process may be looking for it.
            shutil.copy2(place / "build" / "bin" / program, folder / f".{program}.{os.getpid()}")
            os.replace(folder / f".{program}.{os.getpid()}", folder / program)
    return folder


def run_program(command: Sequence[str | Path], folder: Path | None = None) -> str:
    """Run a program and return its standard error. Raises RunError with the program's reason if it fails."""
    name = Path(command[0]).name if command[0] != sys.executable else " ".join(map(str, command[2:4]))
    try:
        done = subprocess.run(
            list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, errors="replace"
        )
    except OSError as error:
        raise RunError(f"{name} can't be started ({error.strerror}).") from None
    if done.returncode:
        raise RunError(f"{name} failed: {_reason(done.stderr or done.stdout, done.returncode).rstrip('.')}.")
    return done.stderr


def _reason(output: str, code: int) -> str:
    """Return the line with the reason in a failed program's output. KenLM prints it after a line with " threw "."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()] or [f"exit code {code}"]
    if thrown := [place + 1 for place, line in enumerate(lines[:-1]) if " threw " in line]:
        return lines[thrown[-1]][:300]
    if code < 0:  # build_binary writes to mapped memory, which fails with a signal if the disk is full
        causes = {
            signal.SIGKILL: "probably because it ran out of memory",
            signal.SIGBUS: "probably because the disk is full (No space left on device)",
        }
        return ", ".join([f"ended by signal {-code}", *[why for number, why in causes.items() if number == -code]])
    return next((line for line in lines if "error" in line.lower()), lines[-1])[:300]


def main() -> None:
    """Build the programs unless they exist. Raises PairscaleError if that fails."""
    folder = build_folder()
    if all(_program(program, folder) for program in PROGRAMS):
        say(f"lmplz and build_binary are already in {folder}.")
    else:
        say(f"Built lmplz and build_binary in {build()}.")


if __name__ == "__main__":
    from pairscale.command.errors import one_line_errors
    from pairscale.version import version_text

    parser = argparse.ArgumentParser(as_typed("python -m train.lmplz"), description=as_typed(__doc__ or ""))
    parser.add_argument("--version", action="version", version=version_text())
    with one_line_errors("pairscale lmplz"):
        parser.parse_args()
        main()
