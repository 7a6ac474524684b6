"""Loops over tables: code that is written once for every robot.

``language`` says what such programs consist of and what they mean, ``recording`` makes them by
running a text once, ``meaning`` runs them on NumPy arrays, which defines them, and ``derivatives``
makes programs of their rates and gradients.
"""
