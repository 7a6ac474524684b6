"""Time stepping: motion with contact in equal steps, impacts and friction solved in each of them."""
