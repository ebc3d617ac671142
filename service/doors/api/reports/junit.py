"""A report as JUnit XML, for what shows the results of tests: a regression that was found is one test that fails."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree as xml

from service.application.reports.findings import Findings, confidence, lives, seconds
from service.domain.bisection import Probe
from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState, ProbeState

#: What XML 1.0 cannot hold.
_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = ("failure", "error", "skipped")


def junit(found: Findings) -> str:
    """As the schema that Jenkins and others read by has it: junit-10."""
    cases = [_bisection(found), *(_probe(found, probe) for probe in found.over)]
    count = Counter(child.tag for case in cases for child in case)
    time_s = f"{found.report.spent.wall_s:.3f}"
    number = {"failures": str(count["failure"]), "errors": str(count["error"])}
    totals = {"tests": str(len(cases)), **number, "time": time_s}
    root = xml.Element("testsuites", {"name": "firstbad", **totals})
    begun = f"{found.bisection.created_at:%Y-%m-%dT%H:%M:%S}"
    name = _fit(f"{found.request.recipe.name} {found.bisection.id}")
    suite = xml.SubElement(
        root, "testsuite", {"name": name, **totals, "skipped": str(count["skipped"]), "timestamp": begun}
    )
    suite.extend(cases)
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _bisection(found: Findings) -> xml.Element:
    ends = f"{', '.join(found.request.good)} .. {found.request.bad}"
    case = _case(found, f"no regression in {ends}", found.report.spent.wall_s)
    headline, explanation = found.report.headline, "\n".join(found.report.explanation)
    match found.bisection.state:
        case BisectionState.FOUND | BisectionState.SUSPECTS:
            sure = f"\nconfidence: {confidence(found)}" if confidence(found) else ""
            _child(case, "failure", headline, "regression", f"{explanation}{sure}")
        case BisectionState.REFUSED | BisectionState.FAILED:
            problem = found.bisection.problem
            _child(case, "error", headline, problem.slug if problem is not None else "error", explanation)
        case _:
            _child(case, "skipped", headline if not lives(found) else f"not over: {headline}")
    return case


def _probe(found: Findings, probe: Probe) -> xml.Element:
    name = f"probe {probe.number}: {probe.sha[:10]} {found.subject(probe.sha)}"
    case = _case(found, name, seconds(probe) or 0.0)
    if probe.state is ProbeState.FAULTED:
        kind = probe.faults[-1].kind if probe.faults else "fault"
        _child(case, "error", probe.reason, kind, "\n".join(fault.message for fault in probe.faults))
    elif probe.verdict is Verdict.SKIP:
        _child(case, "skipped", probe.reason)
    else:
        # That a commit is bad is what the search went by: the regression itself is told once.
        _child(case, "system-out", "", "", f"{probe.verdict or 'measured'}: {probe.reason}")
    return case


def _case(found: Findings, name: str, time_s: float) -> xml.Element:
    classname = _fit(f"firstbad.{found.request.recipe.name}")
    return xml.Element("testcase", {"classname": classname, "name": _fit(name), "time": f"{time_s:.3f}"})


def _child(case: xml.Element, tag: str, message: str, type_: str = "", text: str = "") -> None:
    attributes = {"message": message, "type": type_} if tag in _KINDS[:2] else {"message": message}
    made = xml.SubElement(case, tag, {k: _fit(v) for k, v in attributes.items()} if tag in _KINDS else {})
    made.text = _fit(text) or None


def _fit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
