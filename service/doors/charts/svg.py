"""What matplotlib wrote, made fit for a page: named for who cannot see it, without inline styles, which a strict policy
refuses, and with no more digits than a screen shows."""

from __future__ import annotations

import re
from functools import partial
from xml.etree import ElementTree as ET

from service.application.curve import Curve
from service.doors.charts.words import description, title

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FAMILY = "DejaVu Sans, Verdana, sans-serif"
#: Attributes with coordinates.
_PLACED = frozenset({"d", "x", "y", "transform", "width", "height"})
_DIGITS = re.compile(r"-?\d+\.\d+")
_BLANKS = re.compile(r"\s+")
_REFERENCE = re.compile(r"((?:^|url\()#)([\w.-]+)")
_FONT = re.compile(r"(?:(italic|bold) )?([\d.]+)px (.+)")


def described(written: bytes, curve: Curve) -> bytes:
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    root = ET.fromstring(written)
    _drop(root, f"{{{SVG}}}metadata", f"{{{SVG}}}style")
    for element in root.iter():
        _plain(element)
    for group in list(root.iter(f"{{{SVG}}}g")):
        _share(group)
    _shorten(root)
    _name(root, title(curve), description(curve))
    finished: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return finished


def _drop(root: ET.Element, *tags: str) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _plain(element: ET.Element) -> None:
    """Attributes for what stands in its style; white space between elements goes."""
    element.tail = None
    if element.text is not None and not element.text.strip():
        element.text = None
    for rule in filter(None, (rule.strip() for rule in element.attrib.pop("style", "").split(";"))):
        name, _, value = (part.strip() for part in rule.partition(":"))
        element.attrib.update(_font(value) if name == "font" else {name: value})
    element.attrib.pop("font-family", None)
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for name in _PLACED & element.attrib.keys():
        digits = 1 if element.tag == f"{{{SVG}}}use" else 2
        element.set(name, _BLANKS.sub(" ", _DIGITS.sub(partial(_rounded, digits), element.attrib[name])).strip())
    if link := element.attrib.pop(f"{{{XLINK}}}href", None):
        element.set("href", link)


def _rounded(digits: int, number: re.Match[str]) -> str:
    return f"{float(number[0]):.{digits}f}".rstrip("0").rstrip(".")


def _font(value: str) -> dict[str, str]:
    match = _FONT.fullmatch(value)
    if match is None:
        raise ValueError(f"a font in a form that is not known: {value!r}")
    look = {"italic": {"font-style": "italic"}, "bold": {"font-weight": "bold"}}.get(match[1], {})
    return {**look, "font-size": match[2]}


def _share(group: ET.Element) -> None:
    """What all parts of a group have alike is said once."""
    parts = [child for child in group if child.tag != f"{{{SVG}}}defs"]
    if len(parts) < 2 or len({part.tag for part in parts}) > 1:
        return
    for name, value in list(parts[0].attrib.items()):
        if name not in _INHERITED or any(part.get(name) != value for part in parts):
            continue
        group.attrib.setdefault(name, value)
        if group.get(name) == value:
            for part in parts:
                del part.attrib[name]


def _shorten(root: ET.Element) -> None:
    """Names that hundreds of marks repeat; those of groups tell what they hold and stay."""
    long = [element for element in root.iter() if element.tag in (f"{{{SVG}}}path", f"{{{SVG}}}clipPath")]
    names = {element.attrib["id"]: f"a{at}" for at, element in enumerate(long) if "id" in element.attrib}
    for element in root.iter():
        for name, value in element.attrib.items():
            element.set(name, _REFERENCE.sub(lambda found: found[1] + names.get(found[2], found[2]), value))
        if element.get("id") in names:
            element.set("id", names[element.attrib["id"]])


#: What an element takes from its group.
_INHERITED = frozenset(
    {
        "fill",
        "stroke",
        "stroke-width",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-dasharray",
        "font-size",
        "font-family",
    }
)


def _name(root: ET.Element, name: str, text: str) -> None:
    """Read out as one picture with a name and a description."""
    root.attrib.update(
        {"role": "img", "aria-labelledby": "title desc", "stroke-linejoin": "round", "font-family": FAMILY}
    )
    for at, (tag, told) in enumerate((("title", name), ("desc", text))):
        element = ET.Element(f"{{{SVG}}}{tag}", {"id": tag})
        element.text = told
        root.insert(at, element)
