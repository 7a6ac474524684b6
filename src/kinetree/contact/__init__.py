"""Contact and impact — RBDA chapter 11."""
