"""Forces and accelerations of closed chains, by every method of RBDA chapter 8."""
