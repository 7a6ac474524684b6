"""Many simulations at the speed of compiled code, and their derivatives."""
