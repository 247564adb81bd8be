"""Files that are there whole or not at all, whoever is killed while writing them."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sf2el import SF2EL
from sf2el.storage import atomic
from sf2el.storage.atomic import write_bytes, write_text

SIZE = 200_000
WRITER = f"""
import itertools, sys
from pathlib import Path
from sf2el.storage.atomic import write_bytes
path = Path(sys.argv[1])
write_bytes(path, bytes({SIZE}))
print(flush=True)
for i in itertools.count():
    write_bytes(path, bytes([i % 256]) * {SIZE})
"""

posix = pytest.mark.skipif(atomic.fcntl is None, reason="no locks on this system")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def start(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def whole(path: Path) -> bool:
    content = path.read_bytes()
    return len(content) == SIZE and content == content[:1] * SIZE


@posix
def test_a_killed_writer_leaves_a_whole_file_and_one_other_at_most(tmp_path):
    path, rng, left = tmp_path / "m.sf2el", random.Random(0), 0
    for turn in range(120):
        process = start(path)
        threading.Event().wait(rng.random() * 0.02)
        kill(process)
        assert whole(path)
        others = set(names_in(tmp_path)) - {path.name}
        assert others <= {".m.sf2el.0.sf2el-part"}
        left += len(others)
        if left and turn >= 11:
            break
    assert left  # else nobody was killed while writing
    write_bytes(path, b"next")
    assert names_in(tmp_path) == [path.name]
    assert path.read_bytes() == b"next"


@posix
def test_two_that_write_the_same_file_leave_it_whole(tmp_path):
    path, rng = tmp_path / "m.sf2el", random.Random(1)
    for _ in range(5):
        both = [start(path), start(path)]
        for _ in range(20):
            assert whole(path)
        for process in both:
            threading.Event().wait(rng.random() * 0.02)
            kill(process)
        assert whole(path)
    assert len(names_in(tmp_path)) <= 3


def test_threads_that_write_the_same_file_leave_it_alone_and_whole(tmp_path):
    path, failed = tmp_path / "m.sf2el", []

    def work(value: int) -> None:
        try:
            for _ in range(40):
                write_bytes(path, bytes([value]) * SIZE)
                assert whole(path)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2 + atomic.AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert names_in(tmp_path) == [path.name]


@posix
def test_what_another_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "m"
    handle, temporary = atomic._opened(path)
    os.write(handle, b"half of it")
    write_bytes(path, b"whole")
    assert path.read_bytes() == b"whole" and temporary.read_bytes() == b"half of it"
    os.close(handle)  # as if it were killed
    write_bytes(path, b"again")
    assert names_in(tmp_path) == ["m"] and path.read_bytes() == b"again"


@posix
@pytest.mark.parametrize("kind", ["link", "hard link", "folder"])
def test_what_else_has_the_temporary_name_is_not_written_to(kind, tmp_path):
    path, other = tmp_path / "m", tmp_path / "other"
    temporary = tmp_path / ".m.0.sf2el-part"
    other.write_bytes(b"precious")
    if kind == "folder":
        temporary.mkdir()
    else:
        (temporary.symlink_to if kind == "link" else temporary.hardlink_to)(other)
    write_bytes(path, b"model")
    assert path.read_bytes() == b"model" and other.read_bytes() == b"precious"
    assert len(names_in(tmp_path)) == (2 if kind == "hard link" else 3)


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_says(umask, mode, tmp_path):
    (tmp_path / ".m.0.sf2el-part").write_bytes(b"left")
    before = os.umask(umask)
    try:
        SF2EL(budget="4KiB").save(tmp_path / "m")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "m") == mode


@posix
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    path = tmp_path / "m"
    write_text(path, "old")
    for mode in (0o600, 0o640, 0o666):
        path.chmod(mode)
        write_text(path, "new")
        assert mode_of(path) == mode


@posix
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_gets_a_name_of_its_own(number, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(number, "no locks")

    monkeypatch.setattr(atomic.fcntl, "flock", refuse)
    (tmp_path / ".m.0.sf2el-part").write_bytes(b"left")
    for name in ("m", "n", "n"):
        write_bytes(tmp_path / name, b"content")
    assert names_in(tmp_path) == [".m.0.sf2el-part", "m", "n"]


def test_without_locks_at_all_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    for content in (b"a", b"b"):
        write_bytes(tmp_path / "m", content)
        assert (tmp_path / "m").read_bytes() == content
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="m cannot be written: no space left on device"):
        write_bytes(tmp_path / "m", b"c")
    assert names_in(tmp_path) == ["m"] and (tmp_path / "m").read_bytes() == b"b"


@posix
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    import resource

    path = tmp_path / "m"
    write_bytes(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        for size in (2000, 2_000_000):
            with pytest.raises(
                OSError, match="m cannot be written: file too large; name another file, or make"
            ):
                write_bytes(path, bytes(size))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert names_in(tmp_path) == ["m"] and path.read_bytes() == b"old"


def test_a_name_of_any_length_that_the_disk_takes(tmp_path):
    path = tmp_path / ("m" * 245)
    write_bytes(path, b"content")
    assert names_in(tmp_path) == [path.name]
