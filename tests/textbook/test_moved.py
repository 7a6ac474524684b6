"""Texts that moved from kinetree.algorithms are still found there, with a warning."""

import pytest

import kinetree as kt


@pytest.mark.parametrize("name", sorted(kt.algorithms._DEPRECATED))
def test_moved_texts_warn_and_work(name):
    kt.algorithms.__dict__.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"use kinetree.textbook.{name}"):
        text = getattr(kt.algorithms, name)
    assert text is getattr(kt.textbook, name)


def test_an_unknown_text_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"textbook' has no attribute 'rnea_4d'"):
        kt.textbook.rnea_4d  # noqa: B018
