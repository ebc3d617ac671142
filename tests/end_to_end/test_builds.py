"""Builds on the whole service: as few as the history holds, whoever asks, wherever the wheels lie."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from examples.generate import Example, Options, Stretch, generate, request
from service.domain.bisection import Origin
from service.domain.lifecycle import BisectionState, BuildState
from service.doors.api.views import BuildView
from tests.end_to_end.service import Service, command_of, until
from tests.s3_server import S3

#: Commits 15 to 24 do not compile; the 25th mends that.
UNCOMPILED = Options(commits=40, first_bad=30, does_not_build=(Stretch(15, 24),))


@pytest.fixture
def short(tmp_path: Path) -> Example:
    return generate(tmp_path / "tinyserve", Options(commits=24, first_bad=14))


def builds(service: Service, id: str) -> tuple[BuildView, ...]:
    with service.client() as client:
        return client.builds(id)


def compiled(found: tuple[BuildView, ...]) -> Counter[str | None]:
    """Native builds by native key."""
    return Counter(build.native_key for build in found if build.origin is Origin.BUILT)


def test_native_code_is_compiled_once_for_two_bisections_at_once(service: Service, short: Example) -> None:
    ids = [service.submit({**request(short), "width": width}) for width in (1, 2)]
    reports = [service.ended(id, 240) for id in ids]
    assert [report.first_bad for report in reports] == [(short.first_bad,)] * 2
    found = {build.key: build for id in ids for build in builds(service, id)}
    # One that two probes at once made worthless may have been cancelled.
    assert {build.state for build in found.values()} <= {BuildState.BUILT, BuildState.CANCELLED}
    natives = compiled(tuple(found.values()))
    assert set(natives.values()) == {1}
    assert set(natives) == {build.native_key for build in found.values() if build.origin is not None}
    made = Counter(build.origin for build in found.values() if not build.ahead)
    told = [report.wheels for report in reports]
    assert sum(each.built for each in told) == made[Origin.BUILT]
    assert sum(each.overlay for each in told) == made[Origin.OVERLAY]


def test_a_commit_that_does_not_compile_is_the_answer_where_the_build_is_what_fails(
    service: Service, tmp_path: Path
) -> None:
    made = generate(tmp_path / "tinyserve", UNCOMPILED)
    asked = {key: value for key, value in request(made).items() if key not in ("serve", "check", "failure")}
    report = service.ended(service.submit({**asked, "bad": made.commits[20].sha, "failure_in": "build"}), 240)
    assert report.state is BisectionState.FOUND, report
    assert report.first_bad == (made.commits[15].sha,)
    reason = report.evidence[0].probe.reason
    assert reason.startswith("does not build: csrc/")
    assert "error:" in reason


def test_a_fixup_makes_history_that_does_not_build_testable(service: Service, tmp_path: Path) -> None:
    """The first bad commit lies in the stretch that does not compile, so that only suspects could be named without."""
    made = generate(tmp_path / "tinyserve", Options(commits=40, first_bad=20, does_not_build=(Stretch(15, 24),)))
    mended = {"range": f"{made.commits[14].sha}..{made.commits[24].sha}", "cherry_pick": made.commits[25].sha}
    suspects = service.ended(service.submit(request(made)), 240)
    assert suspects.state is BisectionState.SUSPECTS, suspects
    assert made.first_bad in suspects.first_bad
    report = service.ended(service.submit({**request(made), "fixups": [mended]}), 240)
    assert report.first_bad == (made.first_bad,)


def test_wheels_and_logs_may_lie_in_s3(tmp_path: Path, short: Example, s3: S3) -> None:
    service = Service(tmp_path / "home", store_url=s3.url).start()
    try:
        id = service.submit(request(short))
        report = service.ended(id, 240)
        assert report.first_bad == (short.first_bad,)
        with service.client() as client:
            assert b"AssertionError" in b"".join(client.log(report.evidence[0].probe.id))
        wheels = [name for name in s3.names() if name.endswith(".whl")]
        assert len(wheels) >= len(builds(service, id))
    finally:
        service.interrupt()


def test_a_builder_that_dies_in_a_native_build_is_followed_by_another(own_service: Service, short: Example) -> None:
    own_service.start()
    id = own_service.submit({**request(short), "env": {"TINYSERVE_BUILD_SECONDS": "3"}})
    until(lambda: any(build.state is BuildState.RUNNING for build in builds(own_service, id)), "a build runs")
    killed = own_service.part("worker")
    assert command_of(killed)
    killed.kill()
    report = own_service.ended(id, 300)
    assert report.first_bad == (short.first_bad,)
    assert set(compiled(builds(own_service, id)).values()) == {1}
