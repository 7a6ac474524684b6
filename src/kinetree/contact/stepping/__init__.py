"""Time stepping: motion in equal steps, with impacts and friction solved in each of them."""
