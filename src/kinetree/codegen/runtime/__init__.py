"""Machine code as functions of arrays."""
