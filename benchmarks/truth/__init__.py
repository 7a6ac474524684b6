"""Contact judged from outside: scenes, geometry and laws in NumPy, without the engine's figures."""
