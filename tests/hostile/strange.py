"""Names that hurt whoever shows them without care, and a robot that is full of them."""

import random

import numpy as np

import kinetree as kt

SCRIPT = "<img src=x onerror=\"window.hurt='img'\">"
FRAME = "<iframe srcdoc=\"<script>parent.window.hurt='frame'</script>\"></iframe>"
NAMES = (
    SCRIPT,
    FRAME,
    "</script><script>window.hurt='script'</script>",
    "{window.hurt='expression'}",
    "![picture](x.png) [link](javascript:window.hurt='link') `code`",
    "\ud800 half a pair",
    r"$\undefinedcmd$",
    "$ one dollar, _ and ^ and \\",
    "/* comment */ // and",
    "*/ int hurt; /*",
    "*\\\n/ int hurt; /*",
    "what??/",
    "\x1b[31mred\x1b]0;title\x07",
    "\x9b31m \x7f \x00",
    "two\nlines\r\tand a tab",
    "\u202egnikrow\u202c \u2028 \u200b",
    "\"\"\"quotes''' \\",
    "[red]markup[/red] [/none]",
    "%s {0} @TITLE@ @SCRIPT@",
    "_hidden",
    "int",
    "grün 机器人 🤖",
    "x" * 3000,
)
_PIECES = (
    *("<", ">", "&", "'", '"', "/", "*", "\\", "\n", "$", "{", "}", "[", "]", "`", "!", "(", ")"),
    *(
        "?",
        "%",
        "@",
        "#",
        ";",
        "_",
        "-",
        "=",
        ":",
        " ",
        "a",
        "Z",
        "0",
        "é",
        "\x1b[2J",
        "\x07",
        "\0",
    ),
    *("\x85", "\x9b", "\ud800", "\udfff", "\u2028", "\u202e", "🤖", "script", "int", "return"),
)


def random_name(rng: random.Random) -> str:
    """Some of the pieces that parsers look for, put together."""
    return "".join(rng.choices(_PIECES, k=rng.randint(1, 12)))


def robot(names=NAMES):
    """A chain with a body, a joint and a frame for every name, and a mesh that is not there."""
    builder = kt.ModelBuilder(f"model {names[0]}", base_name=f"base {names[-1]}")
    inertia = kt.Inertia.from_mass_center(1.0, np.array([0.0, 0.0, 0.1]), 0.1 * np.eye(3))
    for k, name in enumerate(names):
        on = f"{k - 1} {names[k - 1]}" if k else None
        builder.body(
            f"{k} {name}", on=on, joint=kt.Revolute("y"), joint_name=f"{k} {name}", inertia=inertia
        )
        builder.frame(f"frame {k} {name}", on=f"{k} {name}")
        path = name.replace("\0", "")[:200] + ".stl"
        builder.geometry(kt.geometry.Mesh(path), on=f"{k} {name}", name=f"mesh {name}")
    return builder.build()
