"""Every command: where it is, its line in the help, and examples of its use."""

from __future__ import annotations

from service.cli.later import Entry
from service.cli.status import HELP, RUN

BISECT = "Bisections"
STEER = "Change what a bisection does"
OPERATE = "Nodes and operating"

ENTRIES = {
    "submit": Entry(
        "submit:submit",
        "Start a bisection: print its id, and what its range is once that is known.",
        BISECT,
        ("firstbad submit request.yaml --watch", "firstbad submit request.yaml --set good=v1.4.0 --dry-run"),
        exits=HELP,
    ),
    "parse": Entry(
        "parse:parse",
        "Read the text of an issue, and print the request that it makes.",
        BISECT,
        ("firstbad parse issue.md", "firstbad parse issue.md | firstbad submit - --set repo=./checkout --dry-run"),
    ),
    "run": Entry(
        "run:run",
        "Find the first bad commit of this checkout with a script, as git bisect run does, and several at once.",
        BISECT,
        ("firstbad run --good v1.4.0 --bad main -j 4 -- ./check.sh",),
        exits=RUN,
    ),
    "watch": Entry("looking:watch", "Follow a bisection until it ends.", BISECT, ("firstbad watch b57c",), exits=HELP),
    "show": Entry(
        "looking:show_one",
        "Show where a bisection stands: the first bad commit, and what that stands on.",
        BISECT,
        ("firstbad show b57c --probes", "firstbad show b57c --json | jq -r '.first_bad[]'"),
        exits=HELP,
    ),
    "list": Entry(
        "listing:list_all",
        "List bisections, newest first.",
        BISECT,
        ("firstbad list --live", "firstbad list --state found --project vllm --limit 5"),
    ),
    "logs": Entry(
        "logs:logs",
        "Print the log of a probe, or of its build.",
        BISECT,
        ("firstbad logs b57c.4 -f", "firstbad logs b57c.4 --build"),
    ),
    "export": Entry(
        "export:export",
        "Print the report on a bisection to pass it on, or write it into a file.",
        BISECT,
        ("firstbad export b57c | gh issue comment 12 -F -", "firstbad export b57c --format log -o bisect.log"),
    ),
    "cancel": Entry(
        "steering:cancel",
        "Cancel bisections, and stop what runs for them.",
        STEER,
        ("firstbad cancel b57c b9f0", "firstbad cancel --all --state queued"),
    ),
    "pause": Entry(
        "steering:pause",
        "Begin nothing new for a bisection; what runs goes on to its end.",
        STEER,
        ("firstbad pause b57c",),
    ),
    "resume": Entry("steering:resume", "Let a paused bisection go on.", STEER, ("firstbad resume b57c",)),
    "priority": Entry(
        "steering:priority",
        "Have a bisection go before others, or after them.",
        STEER,
        ("firstbad priority b57c high",),
    ),
    "override": Entry(
        "actions:override",
        "Say of a commit that it is good, bad or cannot be tested, whatever its runs show.",
        STEER,
        ("firstbad override b57c 72ab01c4 bad --why 'seen on my desk'", "firstbad override b57c 72ab none --why wrong"),
    ),
    "reprobe": Entry(
        "actions:reprobe",
        "Run a commit of a bisection once more.",
        STEER,
        ("firstbad reprobe b57c 72ab01c4 --why 'to be sure'",),
    ),
    "extend": Entry(
        "actions:extend",
        "Change what a bisection may cost; one that ended since that was spent goes on.",
        STEER,
        ("firstbad extend b57c --probes 80 --wall 12h",),
    ),
    "clone": Entry(
        "actions:clone",
        "Begin another bisection like one, with changes.",
        STEER,
        ("firstbad clone b57c --set bad=v1.5.1 --watch",),
    ),
    "judge": Entry(
        "operating:judge",
        "Judge the runs of a bisection again by today's rules, without running anything for it.",
        STEER,
        ("firstbad judge b57c",),
    ),
    "up": Entry(
        "up:up",
        "Start the whole service on this machine.",
        OPERATE,
        ("firstbad up", "firstbad up --port 8400 --slots 4"),
    ),
    "worker": Entry(
        "worker:worker",
        "Start a worker on this machine, for a service that runs elsewhere.",
        OPERATE,
        ("firstbad worker --redis redis://host:6379/0 --store s3://bucket/firstbad --slots 4",),
    ),
    "doctor": Entry(
        "operating:doctor",
        "Look over this machine as a node, and say what to do.",
        OPERATE,
        ("firstbad doctor",),
    ),
    "nodes": Entry(
        "operating:nodes",
        "List the machines that build and run, their GPUs, and why one was taken out.",
        OPERATE,
        ("firstbad nodes", "firstbad nodes --return node-7"),
    ),
    "recipes": Entry(
        "recipes:app",
        "Look at the recipes: how each project is built and run, where a request says nothing else.",
        OPERATE,
    ),
    "token": Entry("token:app", "Make, list and revoke the tokens by which callers are known.", OPERATE),
    "db": Entry("db:app", "Look at the schema of the database, and take it to another version.", OPERATE),
    "store": Entry("store:app", "Look after the artifact store, where wheels and logs are kept.", OPERATE),
}
