"""Text of strangers as people may see it.

Names in robot files, and the names of the files themselves, may hold control characters that drive
a terminal, marks that turn the direction of writing, and halves of surrogate pairs, which no
encoding has. Whatever shows such text passes it through ``printable`` first.
"""

__all__ = ["printable"]


def printable(text, keep: str = "") -> str:
    r"""The text with escapes such as ``\x1b`` in place of all that has no picture.

    Args:
        text: anything; its ``str`` is meant.
        keep: characters that stay although they have none, such as a line feed in a message.
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
