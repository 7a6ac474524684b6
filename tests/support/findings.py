"""What the doctor finds, in a form that tests compare."""

from kinetree.doctor import check


def codes(model):
    """Severity and code of each finding, in their order."""
    return [(f.severity, f.code) for f in check(model)]
