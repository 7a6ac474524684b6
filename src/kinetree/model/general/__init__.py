"""Robots as data: code that is compiled once for every robot, and tables that say which it is.

``kinds`` tells bodies apart by what must be known while code is made, ``model`` is what texts run
on to be recorded, and ``tables`` is one robot as integers and floats.
"""
