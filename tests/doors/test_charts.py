"""What a picture of a metric shows, read back from the SVG."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.application.curve import Curve, Point, Run, Side, Step
from service.domain.evidence import Verdict
from service.domain.metric import Better
from service.doors import charts
from service.search.metric.samples import Interval
from tests.doors.curves import CANDIDATES, SOME, STEP, stepped
from tests.fakes.flow import sha

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>",
    "]]><!-- & &amp; \" ' -->",
    r"$x^2$ is $\frac{1}{2}$",
    "\x00\x08\x1b[31m\ud800\ufffe",
    "long " * 2000,
    "\u202egnp.exe עברית \u2067",
    "",
)


class Picture:
    def __init__(self, curve: Curve) -> None:
        self.written = charts.draw(curve)
        self.root = ET.fromstring(self.written)

    def group(self, id: str) -> ET.Element:
        found = self.root.find(f".//{SVG}g[@id='{id}']")
        assert found is not None, id
        return found

    def has(self, id: str) -> bool:
        return self.root.find(f".//{SVG}g[@id='{id}']") is not None

    def marks(self, id: str) -> list[tuple[float, float]]:
        return [(float(use.attrib["x"]), float(use.attrib["y"])) for use in self.group(id).iter(f"{SVG}use")]

    def path(self, id: str) -> list[tuple[float, float]]:
        drawn = " ".join(path.attrib["d"] for path in self.group(id).iter(f"{SVG}path"))
        return [(float(x), float(y)) for x, y in re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", drawn)]

    def look(self, id: str) -> tuple[str, str]:
        """Colour and shape of its marks."""
        group = self.group(id)
        fills = {element.get("fill") for element in group.iter() if element.get("fill")}
        return fills.pop() or "", next(group.iter(f"{SVG}path")).attrib["d"]

    @property
    def texts(self) -> list[str]:
        return [text.text or "" for text in self.root.iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def picture() -> Picture:
    return Picture(stepped())


def test_each_commit_stands_at_its_place_and_level(picture: Picture) -> None:
    good, bad, open_ = (picture.marks(f"commits-{name}") for name in ("good", "bad", "undecided"))
    assert [len(good), len(bad), len(open_)] == [5, 5, 1]
    xs = [x for x, _ in (*good, *open_, *bad)]
    scale = (xs[-1] - xs[0]) / CANDIDATES
    assert [round((x - xs[0]) / scale) for x in xs] == list(SOME)
    # Up is higher, and the good ones are.
    assert max(y for _, y in good) < min(y for _, y in bad)


def test_good_and_bad_differ_in_colour_and_in_shape(picture: Picture) -> None:
    looks = [picture.look(f"commits-{name}") for name in ("good", "bad", "undecided")]
    assert len({colour for colour, _ in looks}) == len({shape for _, shape in looks}) == 3
    assert {"good", "bad", "undecided", "dropped run", "throttled"} <= set(picture.texts)


def test_the_interval_of_a_commit_goes_from_low_to_high(picture: Picture) -> None:
    line = picture.path("intervals-bad")
    marks = picture.marks("commits-bad")
    assert len(line) == 2 * len(marks)
    for (x, y), (low, high) in zip(marks, zip(line[::2], line[1::2], strict=True), strict=True):
        assert low[0] == high[0] == pytest.approx(x, abs=0.1)
        assert high[1] < y < low[1]


def test_every_run_is_a_dot_but_those_that_do_not_count(picture: Picture) -> None:
    runs = [run for point in stepped().points for run in point.runs]
    dots = sum(len(picture.marks(f"runs-{name}")) for name in ("good", "bad", "undecided"))
    assert dots == len(runs) - 1
    assert len(picture.marks("dropped")) == len(picture.marks("marked")) == 1


def test_the_step_stands_before_its_commit_with_its_size(picture: Picture) -> None:
    (at, _), (again, _) = picture.path(f"step-{sha(STEP)[:10]}")
    before, first_bad = picture.marks("commits-undecided")[0][0], picture.marks("commits-bad")[0][0]
    assert before < at == again < first_bad
    assert "12.1 % (9.4 to 14.8 %) worse" in picture.texts


def test_what_is_still_searched_is_shaded() -> None:
    open_step = Step(tuple(sha(at) for at in range(125, 138)), 125, 137, Interval(0.12, 0.07, 0.17))
    picture = Picture(replace(stepped(), left=(125, 137), steps=(open_step,)))
    xs = [x for x, _ in picture.path("searched")]
    at = {place: x for place, (x, _) in zip((0, 62, 124), picture.marks("commits-good"), strict=False)}
    assert min(xs) == pytest.approx(at[124], abs=0.1)
    assert max(xs) == pytest.approx(picture.marks("commits-bad")[0][0], abs=0.1)
    assert not Picture(stepped()).has("searched")


def test_the_ends_are_shown_beside_it_run_by_run_and_by_their_quartiles(picture: Picture) -> None:
    for name in ("good", "bad"):
        assert len(picture.marks(f"end-{name}")) == 20
        box = [y for _, y in picture.path(f"box-{name}")]
        ys = sorted(y for _, y in picture.marks(f"end-{name}"))
        assert min(box) == pytest.approx((ys[4] + ys[5]) / 2, abs=3)
        assert max(box) == pytest.approx((ys[14] + ys[15]) / 2, abs=3)
    assert picture.texts.count("20 runs") == 2


def test_it_says_what_it_shows_and_has_words_for_who_cannot_see_it(picture: Picture) -> None:
    curve = stepped()
    assert {curve.name, curve.headline, "tok/s, higher is better"} <= set(picture.texts)
    assert {sha(0)[:10], sha(STEP)[:10], sha(CANDIDATES)[:10]} <= set(picture.texts)
    name, told = picture.root[0], picture.root[1]
    assert (name.tag, told.tag) == (f"{SVG}title", f"{SVG}desc")
    assert picture.root.attrib["aria-labelledby"] == f"{name.attrib['id']} {told.attrib['id']}"
    assert name.text == f"{curve.name} over commits: {curve.headline}"
    assert f"step at {sha(STEP)[:10]}: 12.1 % (9.4 to 14.8 %) worse" in (told.text or "")
    assert "11 of 250 commits were measured" in (told.text or "")


@pytest.mark.parametrize("measured", [SOME, range(CANDIDATES + 1), (0, 1, 248, 249)])
def test_labels_below_the_commits_keep_apart(measured: Sequence[int]) -> None:
    picture = Picture(stepped(sorted({*SOME, *measured})))
    shas = {sha(at)[:10] for at in range(CANDIDATES + 1)}
    xs = sorted(float(t.attrib["x"]) for t in picture.root.iter(f"{SVG}text") if t.text in shas)
    assert len(xs) >= 4
    # Ten digits of eight pixels' height are about 50 wide.
    assert all(right - left > 52 for left, right in zip(xs, xs[1:], strict=False))


def test_two_hundred_and_fifty_commits_weigh_less_than_a_photograph() -> None:
    picture = Picture(stepped(range(CANDIDATES + 1), 5))
    assert len(picture.marks("commits-good")) == STEP - 1
    assert len(picture.written) < 90_000


def test_another_process_draws_the_same_bytes(picture: Picture) -> None:
    code = (
        "import sys; from service.doors import charts; from tests.doors.curves import stepped;"
        "sys.stdout.buffer.write(charts.draw(stepped()))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == picture.written


def test_its_tag_changes_with_it_alone() -> None:
    assert charts.tag(stepped()) == charts.tag(stepped())
    more = replace(stepped(), notes=("2 runs were dropped",))
    assert charts.tag(more) != charts.tag(stepped())


def test_its_tag_changes_with_what_draws_it(tmp_path: Path) -> None:
    same, other = (shutil.copytree(charts.HERE, tmp_path / name) for name in ("same", "other"))
    with (other / "figure.py").open("a") as figure:
        figure.write("WIDTH = 3\n")
    assert charts.tag(stepped(), same) == charts.tag(stepped()) != charts.tag(stepped(), other)


def test_only_ends_that_are_measured_can_be_drawn_and_none_at_all() -> None:
    picture = Picture(Curve("latency", "ms", Better.LOWER))
    assert "nothing is measured yet" in picture.texts
    runs = (Run("b1.1", 3.0, "node-1"),)
    ends = (Point(sha(0), "a", 0, None, runs, end="good"), Point(sha(4), "b", 4, None, runs, end="bad"))
    picture = Picture(Curve("latency", "ms", Better.LOWER, ends, Side((3.0,)), Side((3.0,)), candidates=4))
    assert len(picture.marks("alone-good")) == len(picture.marks("alone-bad")) == 1
    assert {"good", "bad"} <= set(picture.texts)


def parts(root: ET.Element) -> Iterator[tuple[str, str]]:
    for element in root.iter():
        yield element.tag, ""
        yield from element.attrib.items()


@pytest.mark.parametrize("text", HOSTILE)
def test_what_users_wrote_is_text_and_nothing_else(text: str, picture: Picture) -> None:
    run = Run("b1.1", 3.0, text, (text,), "")
    curve = replace(
        stepped(),
        name=text,
        unit=text,
        headline=text,
        notes=(text,),
        points=(Point(sha(0), text, 0, None, (run, replace(run, dropped=text)), end="good"),),
    )
    drawn = Picture(curve)
    assert {tag for tag, _ in parts(drawn.root)} <= {tag for tag, _ in parts(picture.root)}
    expected = text.strip()[:20].strip()
    if expected.isprintable() and expected:
        assert any(shown.startswith(expected) for shown in drawn.texts)
    assert all(len(shown) <= 110 for shown in drawn.texts)
    assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069]", drawn.written.decode())


@pytest.mark.filterwarnings("ignore:Glyph")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(max_size=40), value=st.floats(), low=st.floats(), high=st.floats(), place=st.integers(0, 6))
def test_any_text_and_any_number_gives_a_picture(text: str, value: float, low: float, high: float, place: int) -> None:
    runs = (Run("b1.1", value, text), Run("b1.2", low, text, (), text), Run("b1.3", high, text, (text,)))
    point = Point(sha(place), text, place, Interval(value, low, high), runs, Verdict.BAD)
    step = Step((sha(place),), place, place, Interval(value, low, high), relative=False)
    side = Side((value, low, high, 1.0, 2.0), Interval(value, low, high))
    curve = Curve(text, text, Better.LOWER, (point,), side, Side(), (step,), 6, (1, place), "step", text, (text,))
    drawn = Picture(curve)
    numbers = [value for name, value in parts(drawn.root) if name in ("x", "y", "d")]
    assert not [number for number in numbers if "nan" in number or "inf" in number]


@pytest.mark.parametrize("level", [Interval(500.0, -inf, inf), Interval(nan, nan, nan), Interval(1e308, -1e308, 1e308)])
def test_an_interval_without_an_end_is_drawn_to_the_edge(level: Interval) -> None:
    first, *others = stepped().points
    drawn = Picture(replace(stepped(), points=(replace(first, level=level), *others)))
    assert all(0 <= y <= 400 for _, y in drawn.path("intervals-good"))


def test_a_strict_policy_has_nothing_to_refuse(picture: Picture) -> None:
    names = {name for name, _ in parts(picture.root)}
    assert not {"style", f"{SVG}style", f"{SVG}script", f"{SVG}image"} & names
    links = [value for name, value in parts(picture.root) if name.endswith("href")]
    assert links and all(link.startswith("#") for link in links)
