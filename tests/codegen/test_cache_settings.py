"""Where the cache is and how large it may grow."""

import os
import sys

import pytest

from kinetree.codegen.cache import cache_folder, size_limit


def test_the_variable_names_the_folder(tmp_path):
    assert cache_folder({"KINETREE_CACHE": str(tmp_path)}) == str(tmp_path)
    assert cache_folder({"KINETREE_CACHE": "here"}) == os.path.abspath("here")
    assert cache_folder({"KINETREE_CACHE": "~/here"}) == os.path.expanduser("~/here")


@pytest.mark.parametrize("text", ["off", "OFF", " off "])
def test_off_switches_it_off(text):
    assert cache_folder({"KINETREE_CACHE": text}) is None


def test_each_platform_has_its_place(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    def inside(*parts):
        return os.path.join(str(tmp_path), *parts)

    assert cache_folder({}, "linux") == inside(".cache", "kinetree")
    assert cache_folder({"KINETREE_CACHE": ""}, "linux") == inside(".cache", "kinetree")
    assert cache_folder({"XDG_CACHE_HOME": inside("x")}, "linux") == inside("x", "kinetree")
    assert cache_folder({"XDG_CACHE_HOME": "x"}, "linux") == inside(".cache", "kinetree")
    assert cache_folder({}, "darwin") == inside("Library", "Caches", "kinetree")
    assert cache_folder({"LOCALAPPDATA": inside("L")}, "win32") == inside("L", "kinetree", "Cache")
    assert cache_folder({}, "win32") == inside("AppData", "Local", "kinetree", "Cache")


def test_a_user_without_a_home_is_an_error(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(FileNotFoundError, match="no home folder"):
        cache_folder({}, sys.platform)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 2**30),
        ("0", 0),
        ("12345", 12345),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("2GiB", 2 * 2**30),
        ("1.5k", 1500),
        ("1Ti", 2**40),
    ],
)
def test_sizes(text, size):
    assert size_limit({"KINETREE_CACHE_SIZE": text}) == size


@pytest.mark.parametrize("text", ["much", "-1", "1 XB", "MB", "1e9"])
def test_what_is_not_a_size_is_rejected(text):
    with pytest.raises(ValueError, match=f"KINETREE_CACHE_SIZE must be a size .* got '{text}'"):
        size_limit({"KINETREE_CACHE_SIZE": text})
