"""What a renderer of an ordinary language has to say: how it spells what a program does."""

from abc import ABC, abstractmethod

__all__ = ["Language"]


class Language(ABC):
    """How a language spells what a program does. Texts of operands come ready to be pasted."""

    calls: dict  # operation -> format string, for everything that is not infix
    inputs_have_names: bool  # whether elements of inputs are taken out first
    joins_sines = False  # whether a sine and its cosine are computed together
    longest = 70  # characters of an expression that is written where it is used

    @abstractmethod
    def constant(self, x: float) -> str:
        """A number."""

    @abstractmethod
    def input(self, argument, index) -> str:
        """An element of an input."""

    @abstractmethod
    def output(self, argument, index, text) -> list:
        """Lines that set an element of an output."""

    @abstractmethod
    def define(self, name, text, is_condition=False) -> list:
        """Lines that give a value a name."""

    def sine_and_cosine(self, names, text, argument) -> list:
        """Lines that define the sine and the cosine of a value together, where ``joins_sines``.

        Args:
            names: of the sine and of the cosine; None for one that is not needed.
            text: the value.
            argument: its node.
        """
        raise TypeError(f"{type(self).__name__} computes sines and cosines one by one")

    def call(self, op, texts, operands) -> str:
        """An operation that is not infix.

        Args:
            op: the operation.
            texts: its operands.
            operands: their nodes.
        """
        return self.calls[op].format(*texts)

    @abstractmethod
    def require(self, text) -> list:
        """Lines that notice when a condition does not hold."""

    @abstractmethod
    def loop(self, counter, times, carries, initial, body, following) -> list:
        """Lines that run ``body`` while ``counter < times``; carries advance all at once."""
