"""Calls whose notices are not what a test is about."""

import warnings

import kinetree as kt


def without_warnings(function, *arguments, **options):
    """The result of a call that may warn about models."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        return function(*arguments, **options)
