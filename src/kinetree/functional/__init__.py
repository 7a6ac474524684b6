"""Functions of functions: write your own, compile, differentiate, export."""
