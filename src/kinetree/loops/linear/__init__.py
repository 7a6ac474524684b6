"""Linear models of closed chains, and what is made of them."""
