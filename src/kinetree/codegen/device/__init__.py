"""The engine's own code on a GPU: LLVM's text of procedures and of general code as PTX.

Worlds are computed one by a thread. Their memories are interleaved word by word, so that threads
that read the same number of their worlds read neighbouring words (``interleave``). ``units`` has
the texts, ``library`` what the C library does elsewhere, ``linking`` the calls by address and the
entry, ``assembly`` makes PTX of them and machine code.
"""
