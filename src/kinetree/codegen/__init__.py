"""From expression graphs to code that runs; see README.md."""
