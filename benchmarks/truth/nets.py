"""Nets of rods with closed loops, as MJCF."""


def net(rows: int, columns: int, cell: float = 0.1) -> str:
    """A net of ``rows × columns`` cells that falls over a post.

    A spine of rods with a branch at each end of them, all on ball joints; cross rods hang from the
    branches, and each closes a loop with the next branch.
    """
    pairs = []

    def rod(name, axis, inside, at="0 0 0"):
        end = f"{cell} 0 0" if axis == "x" else f"0 {cell} 0"
        return (
            f'<body name="{name}" pos="{at}"><joint type="ball" damping="1e-4"/>'
            f'<geom type="capsule" size="0.008" fromto="0 0 0 {end}" mass="0.02"/>{inside}</body>'
        )

    def branch(i, j=0):
        """Rods from node (i, j) of a branch on, with their cross rods."""
        if j == rows:
            return ""
        far = f"0 {cell} 0"
        more = branch(i, j + 1)
        cross = ""
        if i < columns:
            name = f"cross{i}_{j}"
            pairs.append((name, f"{cell} 0 0", f"branch{i + 1}_{j}", far))
            cross = rod(name, "x", "")
        onward = "".join(x.replace('pos="0 0 0"', f'pos="{far}"', 1) for x in (cross, more) if x)
        return rod(f"branch{i}_{j}", "y", onward)

    def spine(i):
        if i == columns:
            return branch(i)
        return branch(i) + rod(f"spine{i}", "x", _shifted(spine(i + 1), cell))

    body = spine(0)
    post = '<geom type="cylinder" size="0.03 0.3" pos="0.15 0.12 0.3"/>'
    connects = "".join(f'<connect body1="{a}" body2="{b}" anchor="{x}"/>' for a, x, b, _ in pairs)
    return f"""<mujoco><option timestep="2e-3"/><size memory="200M"/>
<default><geom friction="0.5 0.005 0.0001" contype="1" conaffinity="2"/></default>
<worldbody><geom type="plane" size="5 5 1" contype="2" conaffinity="1"/>
{post.replace("/>", ' contype="2" conaffinity="1"/>')}
<body name="corner" pos="0 0 0.7"><freejoint/><geom type="sphere" size="0.01" mass="0.02"/>
{body}</body></worldbody><equality>{connects}</equality></mujoco>"""


def _shifted(bodies, cell):
    """Bodies that hang at the far end of a rod along x: only those at the top are moved."""
    out, depth, k = [], 0, 0
    while k < len(bodies):
        if bodies.startswith("<body", k):
            end = bodies.index(">", k) + 1
            tag = bodies[k:end]
            out.append(tag.replace('pos="0 0 0"', f'pos="{cell} 0 0"') if depth == 0 else tag)
            depth, k = depth + 1, end
        elif bodies.startswith("</body>", k):
            out.append("</body>")
            depth, k = depth - 1, k + 7
        else:
            out.append(bodies[k])
            k += 1
    return "".join(out)
