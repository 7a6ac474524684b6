"""Arrays of other libraries: CuPy, PyTorch and JAX; see ``README.md``."""
