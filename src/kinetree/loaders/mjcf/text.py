"""The text that MuJoCo gets: one tag on each line, without what the mechanism does not depend on.

Left out are pictures, buffers, sensors and settings of the simulator; some of these open files or
take memory or time without bound.
"""

from xml.sax.saxutils import quoteattr

__all__ = ["text_of"]

_SECTIONS = {"visual", "statistic", "size", "sensor", "custom", "contact"}
_ELEMENTS = {"texture", "skin", "layer", "camera", "light", "lengthrange"}
_ATTRIBUTES = {"user", "nsample", "interp", "delay", "interval"}
_ATTRIBUTES_OF = {
    "material": {"texture"},
    "compiler": {"meshdir", "texturedir", "assetdir", "strippath"},
    "key": {"time", "act", "ctrl", "mpos", "mquat", "plastic"},
}
# Simulating the model to find the lengths of muscles may take any time.
_LAST = '<compiler><lengthrange mode="none"/></compiler>'


def text_of(root, changes):
    """The text, and the element on each of its lines; ``changes`` are attributes by element."""
    lines, elements = [], []
    waiting = [(root, False)]
    while waiting:
        element, closing = waiting.pop()
        if closing:
            lines.append(f"</{element.tag}>")
        else:
            children = [e for e in element.findall("*") if not _left_out(e, root)]
            end = ">" if children or element is root else "/>"
            lines.append(f"<{element.tag}{_attributes(element, changes)}{end}")
            if end == ">":
                waiting.append((element, True))
                waiting += [(child, False) for child in reversed(children)]
        elements.append(element)
    lines.insert(-1, _LAST)
    elements.insert(-1, root)
    return "\n".join(lines) + "\n", elements


def _left_out(element, root):
    tag = element.tag
    return ":" in tag or tag in _ELEMENTS or (tag in _SECTIONS and element.getparent() is root)


def _attributes(element, changes):
    left_out = _ATTRIBUTES | _ATTRIBUTES_OF.get(element.tag, set())
    kept = {k: v for k, v in element.attrib.items() if k not in left_out and "}" not in k}
    kept |= changes.get(element, {})
    return "".join(f" {name}={quoteattr(value)}" for name, value in kept.items())
