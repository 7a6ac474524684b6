"""Soft contact: forces of compliant surfaces, from positions and velocities — RBDA §11.8."""
