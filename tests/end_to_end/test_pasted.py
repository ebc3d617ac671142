"""A script as it stands in an issue, handed in as it is, through the whole service."""

from __future__ import annotations

from pathlib import Path

from service.domain.lifecycle import BisectionState
from tests.end_to_end.service import Service
from tests.repositories import NewCommit, build_repository, git

PASTE = """\
```bash
$ nohup python3 -m http.server 8123 --bind 127.0.0.1 > /tmp/server.log 2>&1 &
$ SERVER=$!
$ sleep 300
$ python3 - <<'EOF'
> import urllib.request
> text = urllib.request.urlopen("http://127.0.0.1:8123/n").read()
> assert int(text) < 3, text
> EOF
$ grep -q "GET /n" /tmp/server.log
$ kill $SERVER
```
"""


def test_a_pasted_script_is_served_and_checked_without_its_waiting(service: Service, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    build_repository(repository, [NewCommit(files={"n": str(n)}) for n in range(5)])
    document = {"project": "source", "repo": str(repository), "good": "main~4", "bad": "main", "script": PASTE}
    report = service.ended(service.submit({**document, "timeout": "2m"}), 120)
    assert report.state is BisectionState.FOUND, report
    assert report.first_bad == (git(repository, "rev-parse", "main~1").strip(),)
    assert report.request.serve is not None and report.request.serve.port == 8123
    assert any("`sleep 300`" in note for note in report.notes)
    with service.client() as client:
        log = b"".join(client.log(report.evidence[0].probe.id)).decode()
    assert "GET /n" in log and "AssertionError: b'3'" in log
