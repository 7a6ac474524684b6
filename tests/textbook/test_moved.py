"""Texts that moved or were folded are still found in kinetree.algorithms, with a warning."""

import pytest

import kinetree as kt


@pytest.mark.parametrize("name", sorted(kt.algorithms._DEPRECATED))
def test_moved_texts_warn_and_work(name):
    kt.algorithms.__dict__.pop(name, None)
    new = kt.algorithms._DEPRECATED[name]
    with pytest.warns(DeprecationWarning, match=f"use {new}"):
        text = getattr(kt.algorithms, name)
    assert text.__name__ == new


@pytest.mark.parametrize("name", sorted(kt.textbook._DEPRECATED))
def test_texts_that_were_folded_warn_and_work(name):
    with pytest.warns(DeprecationWarning, match=f"textbook.{name} is deprecated: use"):
        text = getattr(kt.textbook, name)
    assert text.__name__ == kt.textbook._DEPRECATED[name]


def test_an_unknown_text_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"textbook' has no attribute 'rnea_4d'"):
        kt.textbook.rnea_4d  # noqa: B018
