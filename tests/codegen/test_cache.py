"""The store of compiled code: survives damage, full disks, other processes and being killed."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest
from support.killed_writers import part_of_a_dead_process

from kinetree import files
from kinetree.codegen import cache
from kinetree.codegen.cache import Store, open_store
from kinetree.errors import CacheWarning

LARGE = 2**30


@pytest.fixture(autouse=True)
def complaints(monkeypatch):
    """Each test is a process that has not complained yet."""
    monkeypatch.setattr(cache, "_complaints", set())


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "cache"), LARGE)


def run(code, *arguments):
    """Start a process that knows ``Store`` and runs ``code``."""
    head = "import os, sys, time\nfrom kinetree.codegen.cache import Store\n"
    source = str(Path(cache.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )


def test_what_was_put_is_found(store):
    assert store.get("a") is None
    store.put("a", b"one")
    store.put("b", b"two")
    assert (store.get("a"), store.get("b"), store.get("c")) == (b"one", b"two", None)
    store.put("a", b"three")
    assert store.get("a") == b"three"
    assert Store(store.root, LARGE).get("a") == b"three"


def test_only_the_user_can_read_and_write(store):
    store.put("a", b"one")
    (entry,) = store.entries()
    assert stat.S_IMODE(os.stat(entry.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(store.folder).st_mode) == 0o700


def test_clear_removes_our_files_and_no_others(store):
    store.put("a", b"one")
    store.put("b", b"two")
    partial = Path(store.folder, part_of_a_dead_process())
    partial.write_bytes(b"half")
    strange = Path(store.folder, "thesis.entry")
    strange.write_text("precious")
    size = sum(entry.size for entry in store.entries())
    assert store.clear() == size + len(b"half")
    assert store.get("a") is None
    assert store.entries() == []
    assert os.listdir(store.folder) == [strange.name]
    assert Store(str(Path(store.root, "nowhere")), LARGE).clear() == 0


class TestDamage:
    @pytest.fixture
    def path(self, store):
        store.put("a", b"payload" * 20)
        (entry,) = store.entries()
        return Path(entry.path)

    def test_flipped_bytes(self, store, path):
        whole = path.read_bytes()
        for place in range(0, len(whole), 7):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            assert store.get("a") is None
            assert not path.exists()
            store.put("a", b"payload" * 20)
            assert store.get("a") == b"payload" * 20

    @pytest.mark.parametrize("length", [0, 1, 30, 60, 100])
    def test_truncated(self, store, path, length):
        path.write_bytes(path.read_bytes()[:length])
        assert store.get("a") is None
        assert not path.exists()

    def test_an_entry_under_the_name_of_another(self, store, path):
        store.put("b", b"other")
        other = next(e.path for e in store.entries() if e.path != str(path))
        os.replace(other, path)
        assert store.get("a") is None
        assert not path.exists()

    def test_a_folder_in_its_place(self, store, path):
        path.unlink()
        path.mkdir()
        assert store.get("a") is None
        with pytest.warns(CacheWarning):
            store.put("a", b"new")

    def test_open_to_others_it_is_replaced(self, store, path):
        path.chmod(0o666)
        assert store.get("a") is None
        store.put("a", b"new")
        assert store.get("a") == b"new"


class TestFolderThatCannotBeUsed:
    def fails(self, store, message):
        with pytest.warns(CacheWarning, match=message) as caught:
            store.put("a", b"one")
        assert "KINETREE_CACHE" in str(caught[0].message)
        assert store.get("a") is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.put("a", b"one")  # said once, it is not said again

    @pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
    def test_no_file_can_be_made(self, store, monkeypatch, number):
        monkeypatch.setattr(cache.os, "open", raising(number))
        self.fails(store, os.strerror(number))

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EFBIG])
    def test_the_disk_fills_up_in_the_middle(self, store, monkeypatch, number):
        def write_half(descriptor, data):
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(files, "write_all", write_half)
        self.fails(store, os.strerror(number))
        assert os.listdir(store.folder) == []

    def test_no_folder_can_be_made(self, store, monkeypatch):
        monkeypatch.setattr(cache.os, "makedirs", raising(errno.EROFS))
        self.fails(store, "Read-only")

    def test_a_file_stands_in_its_place(self, tmp_path):
        (tmp_path / "file").write_text("")
        store = Store(str(tmp_path / "file"), LARGE)
        with pytest.warns(CacheWarning, match="Not a directory"):
            assert store.get("a") is None
        store.put("a", b"one")
        assert (tmp_path / "file").read_text() == ""

    def test_a_read_only_folder_is_read(self, store):
        store.put("a", b"one")
        os.utime(store.entries()[0].path, (5, 5))
        os.chmod(store.folder, 0o500)
        assert store.get("a") == b"one"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)  # none for the administrator
            store.put("b", b"two")
        assert store.get("a") == b"one"
        os.chmod(store.folder, 0o700)

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
    def test_others_may_write(self, store, mode):
        store.put("a", b"one")
        os.chmod(store.folder, mode)
        with pytest.warns(CacheWarning, match=r"other users may write .*chmod go-w"):
            assert store.get("a") is None
        os.chmod(store.folder, 0o700)
        assert store.get("a") == b"one"

    def test_another_user_owns_it(self, store, monkeypatch):
        store.put("a", b"one")
        if os.geteuid() == 0:
            os.chown(store.folder, 54321, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 54321)
        with pytest.warns(CacheWarning, match="belongs to another user"):
            assert store.get("a") is None
        size = len(store.entries())
        store.put("b", b"two")
        assert len(store.entries()) == size


def raising(number):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return fail


class TestLimit:
    def test_the_least_recently_used_make_room(self, tmp_path):
        one = 1000
        store = Store(str(tmp_path), 8 * (one + 100))
        for k in range(8):
            store.put(f"{k}", bytes(one))
            os.utime(store._path(f"{k}"), (1e9 + k, 1e9 + k))
        assert store.get("0") is not None  # which is a use
        store.put("8", bytes(one))
        kept = {k for k in range(9) if store.get(f"{k}") is not None}
        assert {0, 8, 7} <= kept
        assert not {1, 2} & kept
        assert sum(entry.size for entry in store.entries()) <= store.limit

    def test_it_holds_however_much_is_written(self, tmp_path):
        store = Store(str(tmp_path), 50_000)
        for k in range(200):
            store.put(f"{k}", bytes(1000))
        assert sum(entry.size for entry in store.entries()) <= 50_000 * 17 / 16
        assert store.get("199") is not None

    def test_processes_that_write_little_measure_the_folder_now_and_then(
        self, tmp_path, monkeypatch
    ):
        """One entry each, and together six times the limit: one in four looks at all of them."""
        draw, limit, looks = random.Random(5), 50_000, []
        monkeypatch.setattr(cache, "_fraction", draw.random)
        listed = Store.entries
        monkeypatch.setattr(Store, "entries", lambda s: looks.append(s) or listed(s))
        for k in range(400):
            Store(str(tmp_path), limit).put(f"{k}", bytes(700))
        assert 60 < len(looks) < 140
        assert sum(entry.size for entry in listed(Store(str(tmp_path), limit))) <= limit * 5 / 4

    def test_every_fraction_is_drawn(self):
        drawn = sorted(cache._fraction() for _ in range(200))
        assert 0 <= drawn[0] < 0.2 < 0.8 < drawn[-1] < 1

    def test_what_exceeds_it_alone_is_not_kept(self, tmp_path):
        store = Store(str(tmp_path), 1000)
        store.put("a", bytes(100))
        store.put("b", bytes(2000))
        assert (store.get("a"), store.get("b")) == (bytes(100), None)

    def test_what_killed_processes_left_is_swept_up(self, store):
        store.put("a", b"one")
        name = part_of_a_dead_process()
        Path(store.folder, name).write_bytes(b"half")
        Store(store.root, LARGE).put("b", b"two")
        assert name not in os.listdir(store.folder)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "socket"])
def test_what_is_not_a_regular_file_is_ignored(store, kind):
    """Opening a pipe would wait for somebody who writes to it."""
    store.put("a", b"one")
    (entry,) = store.entries()
    os.unlink(entry.path)
    if kind == "pipe":
        os.mkfifo(entry.path)
    elif kind == "folder":
        os.mkdir(entry.path)
    elif kind == "link":
        os.symlink("/dev/zero", entry.path)
    else:
        os.mknod(entry.path, 0o600 | stat.S_IFSOCK)
    assert store.get("a") is None
    assert store.look("a") is None
    assert store.entries() == []
    assert list(store.with_keys()) == []
    if kind != "folder":
        store.put("a", b"two")
        assert store.get("a") == b"two"


class TestProcesses:
    def test_killed_while_writing(self, store):
        child = run(
            """
            from kinetree import files
            def write_half(descriptor, data):
                os.write(descriptor, data[:len(data) // 2])
                print("half", flush=True)
                time.sleep(60)
            files.write_all = write_half
            Store(sys.argv[1], 2**30).put("a", bytes(100_000))
            """,
            store.root,
        )
        assert child.stdout.readline() == "half\n"
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        assert len(os.listdir(store.folder)) == 1
        assert store.get("a") is None
        store.put("a", b"whole")
        assert store.get("a") == b"whole"

    def test_killed_at_any_moment(self, store):
        child = run(
            """
            store = Store(sys.argv[1], 2**30)
            print("ready", flush=True)
            for k in range(10**6):
                store.put(f"{k % 10}", bytes([k % 10]) * 200_000)
            """,
            store.root,
        )
        child.stdout.readline()
        while child.poll() is None and len(store.entries()) < 5:
            time.sleep(0.01)
        child.kill()
        child.communicate()
        assert len(store.entries()) >= 5
        for k in range(10):
            assert store.get(f"{k}") in (None, bytes([k]) * 200_000)

    def test_writing_reading_evicting_and_clearing_at_once(self, store):
        code = """
            store = Store(sys.argv[1], 300_000)
            found = 0
            for k in range(400):
                key = f"{k % 7}"
                payload = bytes([k % 7]) * 60_000
                store.put(key, payload)
                got = store.get(f"{(k + 5) % 7}")  # two ago: one alone finds it
                assert got in (None, bytes([(k + 5) % 7]) * 60_000)
                found += got is not None
                if k % 50 == 49:
                    store.clear()
            print("well", found)
            """
        children = [run(code, store.root) for _ in range(3)]
        assert [child.communicate()[0].split()[0] for child in children] == ["well"] * 3
        assert int(run(code, store.root).communicate()[0].split()[1]) > 300  # nobody else is there
        for k in range(7):
            assert store.get(f"{k}") in (None, bytes([k]) * 60_000)

    def test_one_makes_what_several_want(self, store):
        code = """
            store = Store(sys.argv[1], 2**30)
            with store.alone("a"):
                if store.get("a") is None:
                    print("made", flush=True)
                    time.sleep(0.5)
                    store.put("a", b"one")
            assert store.get("a") == b"one"
            """
        children = [run(code, store.root) for _ in range(3)]
        assert sorted(child.communicate()[0] for child in children) == ["", "", "made\n"]
        assert not any(child.returncode for child in children)
        assert [Path(entry.path).name for entry in store.entries()] == os.listdir(store.folder)

    def test_nobody_waits_for_a_process_that_was_killed(self, store):
        code = """
            with Store(sys.argv[1], 2**30).alone("a"):
                print("mine", flush=True)
                time.sleep(600)
            """
        child = run(code, store.root)
        assert child.stdout.readline() == "mine\n"
        child.kill()
        child.communicate()
        assert len(os.listdir(store.folder)) == 1
        with store.alone("a"):
            assert not store.entries()
        assert os.listdir(store.folder) == []

    def test_patience_ends(self, store, monkeypatch):
        monkeypatch.setattr(cache, "_PATIENCE", 0.05)
        with store.alone("a"), store.alone("b"), store.alone("a"), store.alone(None):
            assert len(os.listdir(store.folder)) == 2
        assert os.listdir(store.folder) == []

    def test_without_locks_nobody_waits(self, store, monkeypatch):
        monkeypatch.setattr(cache, "_lock", raising(errno.ENOLCK))
        with store.alone("a"), store.alone("a"):
            store.put("a", b"one")
        assert store.get("a") == b"one"

    def test_a_file_size_limit_of_the_system(self, store):
        child = run(
            """
            import resource, signal, warnings
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            store = Store(sys.argv[1], 2**30)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                store.put("a", bytes(100_000))
            print(caught[0].category.__name__, store.get("a"), os.listdir(store.folder))
            """,
            store.root,
        )
        assert child.communicate()[0] == "CacheWarning None []\n"


class TestOpening:
    def test_the_variable_is_honoured_at_every_call(self, monkeypatch, tmp_path):
        monkeypatch.setenv("KINETREE_CACHE", str(tmp_path))
        monkeypatch.setenv("KINETREE_CACHE_SIZE", "5MB")
        assert open_store().root == str(tmp_path)
        assert open_store().limit == 5_000_000
        assert open_store() is open_store()
        monkeypatch.setenv("KINETREE_CACHE", "off")
        off = open_store()
        off.put("a", b"one")
        assert (off.folder, off.get("a"), off.entries(), off.clear()) == (None, None, [], 0)

    def test_without_a_home_nothing_is_kept(self, monkeypatch):
        monkeypatch.delenv("KINETREE_CACHE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
        with pytest.warns(CacheWarning, match="no home folder"):
            assert open_store().folder is None
