"""Webhooks: made, looked at, and delivered to. Delivery is at least once, in no order, and tried again for a day."""

from __future__ import annotations

import base64
import json
import logging
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from urllib.parse import urlsplit

from service.application import notices
from service.application.hooks import Sent
from service.application.work import Work
from service.domain.bisection import Message
from service.domain.errors import BadRequest, NotFound
from service.domain.webhook import EVENTS, PING, Webhook

log = logging.getLogger(__name__)
#: Seconds from each failed delivery to the next try: a day and some hours in all.
GAPS_S = (5, 30, 300, 1800, 7200, 18000, 36000, 36000)
#: So long nothing may be delivered before a webhook is turned off.
OFF_AFTER = timedelta(days=3)
#: Who asks for no more.
GONE = 410
MOST_WEBHOOKS = 100
#: That are delivered in one go, and how many webhooks at once; as long as they may take no other process takes them.
AT_ONCE, THREADS, LEASE = 64, 8, timedelta(minutes=5)


class Webhooks(Work):
    def create_webhook(
        self,
        url: str,
        by: str,
        events: Iterable[str] = (),
        project: str | None = None,
        submitter: str | None = None,
    ) -> Webhook:
        """Errors: BadRequest."""
        made = new_webhook(url, by, events, project, submitter, self.ports.clock.now())
        self.ports.sender.check(url)
        with self._work() as tx:
            if len(tx.webhooks()) >= MOST_WEBHOOKS:
                raise BadRequest(f"there are {MOST_WEBHOOKS} webhooks already", advice="remove one first")
            tx.add_webhook(made)
        return made

    def webhooks(self) -> tuple[Webhook, ...]:
        with self.ports.bisections.reading() as tx:
            return tx.webhooks()

    def webhook(self, id: str) -> Webhook:
        """Errors: NotFound."""
        with self.ports.bisections.reading() as tx:
            return tx.webhook(id)

    def remove_webhook(self, id: str) -> Webhook:
        """What waits to be delivered to it is dropped. Errors: NotFound."""
        with self._work() as tx:
            found = tx.webhook(id, lock=True)
            tx.remove_webhook(id)
        return found

    def ping_webhook(self, id: str) -> Webhook:
        """It is told at once, also where it is off, which what it answers may end. Errors: NotFound."""
        with self.ports.bisections.transaction() as tx:
            found = tx.webhook(id)
            now = self.ports.clock.now()
            tx.post(notices.ping(found, now), now)
        return found

    def deliver_notices(self) -> int:
        """What is due now, and how many that were. One webhook's are sent one after the other, and the others' beside
        them; when one fails, the rest of that webhook waits as long as after a first failure."""
        claimed = sorted(self._claim(), key=lambda message: str(message.payload["webhook"]))
        groups = [tuple(group) for _, group in groupby(claimed, lambda message: str(message.payload["webhook"]))]
        if groups:
            with ThreadPoolExecutor(min(THREADS, len(groups)), thread_name_prefix="webhooks") as pool:
                list(pool.map(self._deliver_group, groups))
        return len(claimed)

    def _claim(self) -> tuple[Message, ...]:
        now = self.ports.clock.now()
        with self.ports.bisections.reading() as tx:
            if not tx.notices(now, 1):
                return ()
        with self.ports.bisections.transaction() as tx:
            found = tx.notices(now, AT_ONCE)
            tx.postpone([message.key for message in found], now + LEASE)
        return found

    def _deliver_group(self, group: tuple[Message, ...]) -> None:
        for place, message in enumerate(group):
            if not self._deliver_notice(message):
                rest = [later.key for later in group[place + 1 :]]
                with self.ports.bisections.transaction() as tx:
                    tx.postpone(rest, self.ports.clock.now() + timedelta(seconds=GAPS_S[0]))
                return

    def _deliver_notice(self, message: Message) -> bool:
        """False when it failed."""
        id, body = str(message.payload["webhook"]), message.payload["body"]
        assert isinstance(body, dict)
        try:
            hook = self.webhook(id)
        except NotFound:
            hook = None
        if hook is None or (hook.off and body["type"] != PING):
            with self.ports.bisections.transaction() as tx:
                tx.delivered(message.key, self.ports.clock.now())
            return True
        text = json.dumps(body, separators=(",", ":")).encode()
        sent = self.ports.sender.send(hook, str(message.payload["id"]), self.ports.clock.now(), text)
        self._settle(message, sent)
        return not sent.error

    def _settle(self, message: Message, sent: Sent) -> None:
        now, attempt = self.ports.clock.now(), int(str(message.payload["attempt"]))
        with self.ports.bisections.transaction() as tx:
            tx.delivered(message.key, now)
            try:
                hook = tx.webhook(str(message.payload["webhook"]), lock=True)
            except NotFound:
                return
            if not sent.error:
                delivered = replace(hook, off="", failing_since=None, last_error="", tried_at=now, delivered_at=now)
                tx.save_webhook(delivered)
                return
            since = hook.failing_since or now
            off = hook.off or _off(sent, now - since)
            tx.save_webhook(replace(hook, failing_since=since, last_error=sent.error, tried_at=now, off=off))
            if attempt <= len(GAPS_S) and not off:
                tx.post(notices.again(message, attempt + 1), now + timedelta(seconds=GAPS_S[attempt - 1]))
        log.warning("webhook %s: try %d failed: %s%s", hook.id, attempt, sent.error, f"; {off}" if off else "")


def new_webhook(
    url: str, by: str, events: Iterable[str], project: str | None, submitter: str | None, now: datetime
) -> Webhook:
    """Errors: BadRequest."""
    _check(url)
    wanted = tuple(dict.fromkeys(events))
    for place, event in enumerate(wanted):
        if event not in EVENTS:
            what, advice = f"there is no event {event!r}", f"one of {', '.join(EVENTS)}"
            raise BadRequest(what, value=event, field=f"events.{place}", advice=advice)
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    return Webhook(secrets.token_hex(6), url, secret, now, by, wanted, project, submitter)


def _off(sent: Sent, failing: timedelta) -> str:
    if sent.status == GONE:
        return "it answered that it is gone (410)"
    if failing >= OFF_AFTER:
        return f"nothing could be delivered for {OFF_AFTER.days} days; the last time: {sent.error}"
    return ""


def _check(url: str) -> None:
    """Errors: BadRequest. What may be a secret in it is not shown."""
    wrong = ""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            wrong = "is no http or https address"
        elif "@" in parts.netloc:
            wrong = "holds a user or a password"
        elif not url.isascii() or not url.isprintable() or " " in url or len(url) > 2000 or parts.fragment:
            wrong = "is longer than 2000, or holds blanks, a fragment or signs that must be written as %XX"
    except ValueError:
        wrong = "is no address"
    if wrong:
        raise BadRequest(f"url {wrong}", field="url", advice="write it like https://example.org/hooks/firstbad")
