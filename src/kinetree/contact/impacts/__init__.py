"""Impact: impulses, and the velocities after them — RBDA §11.7."""
