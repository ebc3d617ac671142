"""The two clients. Each call of the API is one line in each of them; what it does stands in calls.py or flows.py."""

from __future__ import annotations

from firstbad import access, calls, flows, receivers, steering
from firstbad.methods import asks, asks_async, does, does_async, gives, gives_async
from firstbad.progress import Progress
from firstbad.transport import Async, Sync
from service.doors.api.views import BisectionView, EventView


class Client(Sync):
    """Errors of every method: ProblemError, NoService. Ids may be shortened with `find` first."""

    submit = asks(calls.submit)
    dry_run = asks(calls.dry_run)
    parse = asks(calls.parse)
    bisection = asks(calls.bisection)
    bisections = asks(calls.bisections)
    cancel = asks(calls.cancel)
    pause = asks(calls.pause)
    resume = asks(calls.resume)
    prioritize = asks(calls.prioritize)
    judge_again = asks(calls.judge_again)
    override = asks(steering.override)
    reprobe = asks(steering.reprobe)
    extend = asks(steering.extend)
    clone = asks(steering.clone)
    report = asks(steering.report)
    create_token = asks(access.create_token)
    tokens = asks(access.tokens)
    revoke_token = asks(access.revoke_token)
    create_webhook = asks(receivers.create_webhook)
    webhooks = asks(receivers.webhooks)
    webhook = asks(receivers.webhook)
    remove_webhook = asks(receivers.remove_webhook)
    test_webhook = asks(receivers.test_webhook)
    probes = does(flows.probes)
    builds = does(flows.builds)
    probe = asks(calls.probe)
    events = asks(calls.events)
    nodes = does(flows.nodes)
    return_node = asks(calls.return_node)
    recipes = asks(calls.recipes)
    recipe = asks(calls.recipe)
    curve = does(flows.curve)
    find = does(flows.find)
    wait = does(flows.wait)
    every_bisection = gives(flows.every_bisection, BisectionView)
    listen = gives(flows.listen, EventView)
    log = gives(flows.log, bytes)
    build_log = gives(flows.build_log, bytes)
    changes = gives(flows.changes, Progress)


class AsyncClient(Async):
    """As Client, with the same methods: to be awaited, or iterated over with `async for`."""

    submit = asks_async(calls.submit)
    dry_run = asks_async(calls.dry_run)
    parse = asks_async(calls.parse)
    bisection = asks_async(calls.bisection)
    bisections = asks_async(calls.bisections)
    cancel = asks_async(calls.cancel)
    pause = asks_async(calls.pause)
    resume = asks_async(calls.resume)
    prioritize = asks_async(calls.prioritize)
    judge_again = asks_async(calls.judge_again)
    override = asks_async(steering.override)
    reprobe = asks_async(steering.reprobe)
    extend = asks_async(steering.extend)
    clone = asks_async(steering.clone)
    report = asks_async(steering.report)
    create_token = asks_async(access.create_token)
    tokens = asks_async(access.tokens)
    revoke_token = asks_async(access.revoke_token)
    create_webhook = asks_async(receivers.create_webhook)
    webhooks = asks_async(receivers.webhooks)
    webhook = asks_async(receivers.webhook)
    remove_webhook = asks_async(receivers.remove_webhook)
    test_webhook = asks_async(receivers.test_webhook)
    probes = does_async(flows.probes)
    builds = does_async(flows.builds)
    probe = asks_async(calls.probe)
    events = asks_async(calls.events)
    nodes = does_async(flows.nodes)
    return_node = asks_async(calls.return_node)
    recipes = asks_async(calls.recipes)
    recipe = asks_async(calls.recipe)
    curve = does_async(flows.curve)
    find = does_async(flows.find)
    wait = does_async(flows.wait)
    every_bisection = gives_async(flows.every_bisection, BisectionView)
    listen = gives_async(flows.listen, EventView)
    log = gives_async(flows.log, bytes)
    build_log = gives_async(flows.build_log, bytes)
    changes = gives_async(flows.changes, Progress)
