"""Few points in place of many: of each patch of points with one normal, those that span it."""

from kinetree.codegen.procedures import local, procedure
from kinetree.contact.collision.clipping import axes_across
from kinetree.contact.collision.tables import Touch

FLAT = 1e-3
"""[rad] between normals of one patch."""
_LEVEL = 1e-7  # of the size of a patch: depths that are the same


@procedure
def without_doubles(touch: Touch, start: int, first: int, n: int, same: float) -> int:
    """Drop rows ``first`` to n of ``touch`` that repeat earlier contacts; the new count."""
    kept = first
    for k in range(first, n):
        old = False
        for e in range(start, kept):
            d = touch.point[k] - touch.point[e]
            if d @ d <= same * same and touch.normal[k] @ touch.normal[e] > 1 - FLAT * FLAT:
                old = True
        if not old:
            if kept < k:
                copy_touch(touch, k, kept)
            kept += 1
    return kept


@procedure
def copy_touch(touch: Touch, source: int, target: int):
    """Copy one contact row of ``touch`` over another."""
    touch.point[target] = touch.point[source]
    touch.normal[target] = touch.normal[source]
    touch.gap[target] = touch.gap[source]
    touch.feature[target] = touch.feature[source]


@procedure
def swap_touch(touch: Touch, one: int, two: int):
    """Exchange two contact rows of ``touch``."""
    if one == two:
        return
    p = touch.point[one] * 1.0
    d = touch.normal[one] * 1.0
    gap = touch.gap[one]
    feature = touch.feature[one]
    copy_touch(touch, two, one)
    touch.point[two] = p
    touch.normal[two] = d
    touch.gap[two] = gap
    touch.feature[two] = feature


@procedure
def spread(touch: Touch, start: int, n: int, most: int) -> int:
    """Reduce contacts from row ``start`` on to those that span their patches; the new count.

    Of every patch those stay that are farthest along eight directions, and the deepest one if it is
    deeper; patches with the deepest points come first where there are more than ``most`` in all.
    """
    u, w = local("float", 2, 3)
    done = start
    while done < n:
        # the deepest point that is left, and all with its normal after it
        deepest = done
        for k in range(done + 1, n):
            if touch.gap[k] < touch.gap[deepest] - 1e-12:
                deepest = k
        swap_touch(touch, done, deepest)
        last = done + 1
        for k in range(done + 1, n):
            if touch.normal[k] @ touch.normal[done] > 1 - FLAT * FLAT:
                swap_touch(touch, k, last)
                last += 1
        # of these, rows done .. last
        kept = done + 1
        if last - done > 4:
            axes_across(touch.normal[done], u, w)
            x = 0.9238795325112867
            y = 0.3826834323650898
            outermost = False
            span = 0.0
            for _ in range(8):
                x, y = (x - y) * 0.7071067811865476, (x + y) * 0.7071067811865476
                best = done
                high = -1e300
                for k in range(done, last):
                    d = touch.point[k] - touch.point[done]
                    reach = x * (d @ u) + y * (d @ w)
                    if reach > high + 1e-9 * abs(high):
                        high = reach
                        best = k
                outermost = outermost or best == done
                span = max(span, high)
                if best >= kept:
                    swap_touch(touch, kept, best)
                    kept += 1
            lowest = 1e300
            for k in range(done + 1, kept):
                lowest = min(lowest, touch.gap[k])
            if not outermost and lowest <= touch.gap[done] + _LEVEL * span:
                kept -= 1  # the others are as deep
                swap_touch(touch, done, kept)
        else:
            kept = last
        # what is left of the patch goes
        gone = last - kept
        if gone > 0:
            for k in range(last, n):
                copy_touch(touch, k, k - gone)
            n -= gone
        done = kept
        if done - start >= most:
            return start + most
    return n
