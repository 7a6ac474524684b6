"""A file of the cache is used only when it is whole, private and for the key."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.codegen.cache import pack, read, unpack

FILE = pack("the key", b"some machine code")


@given(key=st.text(), payload=st.binary())
def test_unpack_inverts_pack(key, payload):
    assert unpack(pack(key, payload), key) == payload


@pytest.mark.parametrize("place", range(len(FILE)))
def test_a_flipped_bit_anywhere_is_noticed(place):
    for bit in range(8):
        damaged = bytearray(FILE)
        damaged[place] ^= 1 << bit
        assert unpack(bytes(damaged), "the key") is None


def test_a_file_of_another_length_is_noticed():
    for length in range(len(FILE)):
        assert unpack(FILE[:length], "the key") is None
    assert unpack(FILE + b"\0", "the key") is None
    assert unpack(b"\0" * len(FILE), "the key") is None
    assert unpack(FILE[:8] + FILE[:8] + FILE[8:], "the key") is None


@given(key=st.text())
def test_a_file_written_for_another_key_is_not_used(key):
    assert (unpack(FILE, key) is None) == (key != "the key")


def test_key_and_payload_do_not_run_into_each_other():
    assert unpack(pack("ab", b"c"), "a") is None
    assert unpack(pack("a", b"bc"), "ab") is None


def test_reading_gives_content_and_age(tmp_path):
    path = tmp_path / "entry"
    path.write_bytes(FILE)
    path.chmod(0o600)
    os.utime(path, (5, 5))
    assert read(path) == (FILE, 5.0)


class TestFilesOfOthers:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "entry"
        path.write_bytes(FILE)
        path.chmod(0o600)
        return path

    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_a_file_that_others_may_write_is_rejected(self, path, mode):
        path.chmod(mode)
        with pytest.raises(PermissionError, match=r"other users may write .*chmod go-w"):
            read(path)

    def test_a_file_of_another_user_is_rejected(self, path, monkeypatch):
        owner = os.stat(path).st_uid
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        if owner == 0:  # the administrator's files are trusted, so make it somebody's
            os.chown(path, 54321, -1)
            owner = 54321
        with pytest.raises(PermissionError, match=f"belongs to another user .number {owner}"):
            read(path)

    def test_the_file_of_the_administrator_is_accepted(self, path, monkeypatch):
        status = os.stat_result((0o100600, 0, 0, 1, 0, 0, len(FILE), 0, 0, 0))
        monkeypatch.setattr(os, "fstat", lambda descriptor: status)
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
        assert read(path)[0] == FILE

    def test_a_symbolic_link_is_not_followed(self, path, tmp_path):
        link = tmp_path / "link"
        link.symlink_to(path)
        with pytest.raises(OSError):
            read(link)
