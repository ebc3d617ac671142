"""What a user may write, and what is said when it cannot be used."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.recipes import load
from service.application.ports import Policy
from service.application.submission import ControlForm, ResourcesForm, ServeForm, Submission
from service.application.submit import complete
from service.domain.bisection import FailureIn, OtherFailures, Reproduction
from service.domain.duration import seconds, spoken
from service.domain.errors import BadRequest, UserError
from service.domain.recipe import BRIDGE, NO_NETWORK, Deps, Fixup, ModelCache, Recipe, Resources, SandboxKind
from service.domain.size import size, told

PLAIN = Submission(good=("v1",), bad="main", repo="https://example.org/p.git", script="exit 0")
POLICY = Policy(frozenset(SandboxKind), SandboxKind.PROCESS)


def done(submission: Submission, policy: Policy = POLICY):
    return complete(submission, load(), policy)


def refused(submission: Submission, policy: Policy = POLICY) -> UserError:
    with pytest.raises(UserError) as caught:
        done(submission, policy)
    assert caught.value.advice
    return caught.value


def test_defaults_are_a_wheel_by_uv_no_network_one_probe_at_a_time() -> None:
    request = done(PLAIN)
    assert "uv build" in (request.recipe.build_command or "")
    assert (request.recipe.network, request.width, request.timeout_s) == (NO_NETWORK, 1, 3600.0)


def test_the_request_goes_before_the_recipe() -> None:
    request = done(replace(PLAIN, build="make wheel", network="bridge", env={"A": "{sha}"}))
    assert (request.recipe.build_command, request.recipe.network) == ("make wheel", BRIDGE)
    assert request.recipe.env == {"A": "{sha}"}


def test_who_names_an_image_runs_in_it() -> None:
    assert done(replace(PLAIN, image="img:1")).sandbox is SandboxKind.DOCKER
    assert done(replace(PLAIN, image="img:1", sandbox="process")).sandbox is SandboxKind.PROCESS
    assert done(PLAIN).sandbox is SandboxKind.PROCESS


NATIVE = Recipe(
    "native",
    build_command="make wheel",
    package="vllm",
    wheel_paths=("vllm/**",),
    native_paths=("csrc/**",),
    overlay_command="make overlay",
    wheel_indexes=("https://wheels.example.org/{sha}",),
    deps=Deps("commit", "numpy<2"),
    fixups=(Fixup("a..b", cherry_pick="c"), Fixup("b..c", cherry_pick="d")),
)


def native(**change: object) -> Recipe:
    request = complete(replace(PLAIN, project="native", **change), {"native": NATIVE}, POLICY)  # type: ignore[arg-type]
    return request.recipe


def test_what_the_request_does_not_have_is_the_recipe_s() -> None:
    assert native() == NATIVE


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ({"package": "sglang"}, "package", "sglang"),
        ({"wheel_paths": ("*",)}, "wheel_paths", ("*",)),
        ({"native_paths": ("*.cu", "!x/**")}, "native_paths", ("*.cu", "!x/**")),
        ({"wheel_paths": ()}, "wheel_paths", ()),
        ({"overlay": "make quickly"}, "overlay_command", "make quickly"),
        ({"as_of": "2025-09-25"}, "deps", Deps("2025-09-25", "numpy<2")),
        ({"constraints": "torch==2.8"}, "deps", Deps("commit", "torch==2.8")),
    ],
)
def test_each_key_goes_before_the_recipe_s_alone(change: dict, key: str, value: object) -> None:
    assert native(**change) == replace(NATIVE, **{key: value})


def test_the_request_s_fix_ups_come_behind_the_recipe_s() -> None:
    own = Fixup("v1..v2", patch="--- a/x\n+++ b/x\n")
    assert native(fixups=(own,)).fixups == (*NATIVE.fixups, own)


def test_a_wrong_fix_up_is_told_by_its_place_in_the_request() -> None:
    with pytest.raises(BadRequest, match="'x' is no range") as caught:
        native(fixups=(Fixup("v1..v2", cherry_pick="a"), Fixup("x", cherry_pick="a")))
    assert caught.value.field == "fixups.1.range"


def test_native_paths_need_no_recipe() -> None:
    recipe = done(replace(PLAIN, native_paths=("csrc/**",))).recipe
    assert (recipe.name, recipe.native_paths) == ("python", ("csrc/**",))


def test_a_failing_build_needs_nothing_to_run() -> None:
    request = done(replace(PLAIN, script=None, failure_in="build", failure="error: x"))
    assert request.failure_in is FailureIn.BUILD
    assert request.reproduction == Reproduction(failure="error: x")
    assert done(PLAIN).failure_in is FailureIn.RUN


@pytest.mark.parametrize("change", [{"script": "x"}, {"serve": ServeForm("x")}, {"check": "x"}])
def test_with_a_failing_build_nothing_is_run(change: dict) -> None:
    error = refused(replace(PLAIN, **{"script": None, "failure_in": "build", **change}))
    assert error.field == next(iter(change))
    assert "the build itself is the reproduction" in error.detail


def test_a_build_can_fail_only_where_something_is_built() -> None:
    error = refused(replace(PLAIN, script=None, failure_in="build", project="source"))
    assert (error.field, error.value) == ("failure_in", "build")


def test_the_source_recipe_builds_nothing() -> None:
    assert done(replace(PLAIN, project="source")).recipe.build_command is None


def test_a_server_without_a_sign_of_readiness_is_asked_for_its_health() -> None:
    serve = done(replace(PLAIN, script=None, serve=ServeForm("serve it", within="90s"))).reproduction.serve
    assert serve is not None
    assert (serve.ready_http, serve.ready_log, serve.within_s) == ("/health", None, 90.0)
    by_log = done(replace(PLAIN, script=None, serve=ServeForm("serve it", ready_log="listening"))).reproduction.serve
    assert by_log is not None
    assert (by_log.ready_http, by_log.ready_log) == (None, "listening")


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"good": ()}, "good", "missing"),
        ({"good": ("",)}, "good", "empty"),
        ({"bad": " "}, "bad", "empty"),
        ({"repo": None}, "repo", "missing"),
        ({"project": "nosuch"}, "project", "nosuch"),
        ({"script": ""}, "script", "empty"),
        ({"script": "\n \n"}, "script", "empty"),
        ({"script": None}, "script", "exactly one"),
        ({"serve": ServeForm("x")}, "script", "exactly one"),
        ({"check": "true"}, "check", "beside a server"),
        ({"script": "echo \0"}, "script", "NUL"),
        ({"script": "#" * (256 * 1024 + 1)}, "script", "262145 bytes"),
        ({"script": "é" * (128 * 1024) + "x"}, "script", "262145 bytes"),
        ({"bad": "ma\0in"}, "bad", "NUL"),
        ({"bad": "\ud800"}, "bad", "Unicode"),
        ({"failure": "one\ntwo"}, "failure", "several lines"),
        ({"width": 0}, "width", "0"),
        ({"width": 65}, "width", "65"),
        ({"timeout": "soon"}, "timeout", "soon"),
        ({"timeout": -1}, "timeout", "-1"),
        ({"hang": "maybe"}, "hang", "maybe"),
        ({"sandbox": "chroot"}, "sandbox", "chroot"),
        ({"sandbox": "docker"}, "image", "image"),
        ({"network": "wan"}, "network", "wan"),
        ({"env": {"A B": "1"}}, "env", "A B"),
        ({"env": {"": "1"}}, "env", "''"),
        ({"script": None, "serve": ServeForm("s", ready_http="health")}, "serve.ready.http", "health"),
        ({"script": None, "serve": ServeForm("s", within="x")}, "serve.ready.within", "x"),
        ({"script": None, "serve": ServeForm("")}, "serve.command", "empty"),
        ({"failure_in": "install"}, "failure_in", "install"),
        ({"package": "../x"}, "package", "no name of a package"),
        ({"package": ""}, "package", "empty"),
        ({"native_paths": ("a", "")}, "native_paths.1", "empty"),
        ({"native_paths": ("a", "\ud800")}, "native_paths.1", "Unicode"),
        ({"native_paths": ("a", "/usr/include/**")}, "native_paths.1", "leads out"),
        ({"native_paths": ("!a",)}, "native_paths.0", "takes files out"),
        ({"wheel_paths": ("a",) * 201}, "wheel_paths", "201 patterns"),
        ({"native_paths": ("a",), "project": "source"}, "native_paths", "nothing is built"),
        ({"overlay": "make"}, "overlay", "overlay needs native_paths"),
        ({"as_of": "2025-02-30"}, "deps.as_of", "2025-02-30"),
        ({"as_of": ""}, "deps.as_of", "empty"),
        ({"constraints": "-r x"}, "deps.constraints", "-r x"),
        ({"constraints": "x" * (256 * 1024 + 1)}, "deps.constraints", "262145 bytes"),
        ({"constraints": "x\n" * 5001}, "deps.constraints", "5001 lines"),
        ({"fixups": (Fixup("a..b"),)}, "fixups.0", "exactly one"),
        ({"fixups": (Fixup("a..b", cherry_pick="c", patch="--- a"),)}, "fixups.0", "exactly one"),
        ({"fixups": (Fixup("", cherry_pick="c"),)}, "fixups.0.range", "empty"),
        ({"fixups": (Fixup("a..b", cherry_pick="c d"),)}, "fixups.0.cherry_pick", "names no commit"),
        ({"fixups": (Fixup("a..b", patch="words"),)}, "fixups.0.patch", "no patch"),
        ({"fixups": (Fixup("a..b", patch="x" * (256 * 1024 + 1)),)}, "fixups.0.patch", "262145 bytes"),
        ({"fixups": (Fixup("a..b", cherry_pick="c"),) * 101}, "fixups", "101 fix-ups"),
        ({"control": ControlForm({"exit": "exit"})}, "control.replace", "replaced by itself"),
        ({"control": ControlForm({"": "x"})}, "control.replace", "empty text"),
        ({"control": ControlForm({"exit": "x", "it": "y"})}, "control.replace", "'it' is nowhere"),
        ({"control": ControlForm({"e": "x\0"})}, "control.replace", "NUL"),
        ({"control": ControlForm({str(n): "x" for n in range(51)})}, "control.replace", "51 texts"),
        ({"control": ControlForm(script="#" * (256 * 1024 + 1))}, "control.script", "262145 bytes"),
        ({"control": ControlForm(script="x"), "script": None, "failure_in": "build"}, "control", "nothing is run"),
        ({"other_failures": "ugly"}, "other_failures", "ugly"),
        ({"resources": ResourcesForm(gpus=65)}, "resources.gpus", "65"),
        ({"resources": ResourcesForm(gpu="H100")}, "resources.gpu", "no GPUs"),
        ({"resources": ResourcesForm(gpus=1, gpu="(")}, "resources.gpu", "no regular"),
        ({"resources": ResourcesForm(gpus=1, gpu="H100(?!-40GB)")}, "resources.gpu", "RE2"),
        ({"resources": ResourcesForm(gpus=1, gpu="(a{1000}){1000}")}, "resources.gpu", "RE2"),
        ({"resources": ResourcesForm(gpus=1, gpu=" ")}, "resources.gpu", "empty"),
        ({"resources": ResourcesForm(shm="16 parsecs")}, "resources.shm", "parsecs"),
        ({"resources": ResourcesForm(memory="0")}, "resources.memory", "'0'"),
        ({"resources": ResourcesForm(memory="1MiB")}, "resources.memory", "too few"),
        ({"resources": ResourcesForm(cpus=float("nan"))}, "resources.cpus", "nan"),
        ({"resources": ResourcesForm(pids=3)}, "resources.pids", "3"),
        ({"resources": ResourcesForm(cpuset="0-")}, "resources.cpuset", "'0-'"),
        ({"resources": ResourcesForm(cpuset="0, 2")}, "resources.cpuset", "' 2'"),
        ({"resources": ResourcesForm(cpuset="4-2")}, "resources.cpuset", "ends before it begins"),
        ({"resources": ResourcesForm(cpuset="0-9000")}, "resources.cpuset", "CPU 9000"),
        ({"resources": ResourcesForm(cpuset="1," * 100 + "1")}, "resources.cpuset", "200 characters"),
        ({"resources": ResourcesForm(cpuset=" ")}, "resources.cpuset", "empty"),
        ({"resources": ResourcesForm(numa=-1)}, "resources.numa", "-1"),
        ({"resources": ResourcesForm(numa=0, cpuset="0")}, "resources.cpuset", "both cpuset and numa"),
        ({"secrets": ("OK", "B-D")}, "secrets.1", "no name of a variable"),
        ({"secrets": ("X",), "env": {"X": "1"}}, "secrets.0", "in env and in secrets"),
        ({"secrets": ("FIRSTBAD_X",)}, "secrets.0", "firstbad's own"),
        ({"secrets": tuple(f"S{n}" for n in range(51))}, "secrets", "51 secrets"),
        ({"model_cache": "shared"}, "model_cache", "more than the recipe python allows"),
        ({"model_cache": "none "}, "model_cache", "unknown"),
        ({"script": None, "serve": ServeForm("x", port=70000)}, "serve.port", "70000"),
    ],
)
def test_each_mistake_is_named_with_its_field(change: dict, field: str, said: str) -> None:
    error = refused(replace(PLAIN, **change))
    assert error.field == field
    assert said in error.detail


def test_a_script_of_exactly_256_kib_is_taken() -> None:
    assert done(replace(PLAIN, script="#" * 256 * 1024))


def test_a_sandbox_that_the_operator_does_not_allow_is_refused() -> None:
    only_docker = Policy(frozenset({SandboxKind.DOCKER}), SandboxKind.DOCKER)
    assert refused(replace(PLAIN, sandbox="process"), only_docker).field == "sandbox"


@pytest.mark.parametrize(
    ("text", "value"), [("20m", 1200), ("1h30m", 5400), ("90s", 90), ("5", 5), (7, 7), ("2d", 172800)]
)
def test_durations(text: str | float, value: float) -> None:
    assert seconds(text, field="x") == value


SERVED = replace(PLAIN, script=None, serve=ServeForm("serve --n 2", ready_http="/x", port=81), check="ask 2 2")


def test_a_control_is_written_out_in_full() -> None:
    control = done(replace(SERVED, failure="boom", control=ControlForm({"--n 2": "--n 3", "2": "4"}))).control
    assert control is not None and control.serve is not None
    assert (control.serve.command, control.serve.port, control.serve.ready_http) == ("serve --n 3", 81, "/x")
    assert (control.check, control.failure) == ("ask 4 4", "boom")


def test_a_control_may_be_a_reproduction_of_its_own() -> None:
    control = done(replace(PLAIN, control=ControlForm(serve=ServeForm("serve", within="5m"), check="ask"))).control
    assert control is not None and control.serve is not None
    assert (control.script, control.serve.command, control.serve.within_s, control.check) == (None, "serve", 300, "ask")
    assert done(PLAIN).control is None


def test_texts_are_replaced_all_at_once() -> None:
    control = done(replace(PLAIN, script="a b", control=ControlForm({"a": "b", "b": "c"}))).control
    assert control == Reproduction(script="b c")


def test_what_another_failure_means_is_a_skip_unless_said() -> None:
    assert done(PLAIN).other_failures is OtherFailures.SKIP
    assert done(replace(PLAIN, other_failures="bad")).other_failures is OtherFailures.BAD


MODELS = Recipe(
    "models",
    network="models",
    env={"A": "1"},
    resources=Resources(4, "H100", 1 << 30, 2 << 30, 8.0, 512),
    secrets=("HF_TOKEN",),
    model_cache=ModelCache.READ_ONLY,
)
ENGINE = Policy(frozenset(SandboxKind), SandboxKind.DOCKER)


def models(policy: Policy = ENGINE, **change: object) -> Recipe:
    submission = replace(PLAIN, project="models", image="x", **change)  # type: ignore[arg-type]
    return complete(submission, {"models": MODELS}, policy).recipe


def test_a_request_s_resources_go_before_the_recipe_s_one_by_one() -> None:
    assert models().resources == MODELS.resources
    assert models(resources=ResourcesForm(gpus=1, shm="2g")).resources == replace(
        MODELS.resources, gpus=1, shm_bytes=2 << 30
    )
    assert models(resources=ResourcesForm(gpus=0)).resources == replace(MODELS.resources, gpus=0, gpu=None)
    assert models(resources=ResourcesForm(memory=10**10, cpus=0.5, pids=99, gpu="H800")).resources == Resources(
        4, "H800", 1 << 30, 10**10, 0.5, 99
    )


@pytest.mark.parametrize(
    ("named", "form", "found"),
    [
        (Resources(cpuset="0-3"), ResourcesForm(), Resources(cpuset="0-3")),
        (Resources(cpuset="0-3"), ResourcesForm(cpuset="8,10-11"), Resources(cpuset="8,10-11")),
        (Resources(cpuset="0-3"), ResourcesForm(numa=1), Resources(numa=1)),
        (Resources(numa=1), ResourcesForm(cpuset="0"), Resources(cpuset="0")),
        (Resources(numa=1), ResourcesForm(), Resources(numa=1)),
    ],
)
def test_a_request_names_cpus_in_its_own_way(named: Resources, form: ResourcesForm, found: Resources) -> None:
    submission = replace(PLAIN, project="pinned", resources=form)
    assert complete(submission, {"pinned": Recipe("pinned", resources=named)}, POLICY).recipe.resources == found


def test_secrets_join_the_recipe_s() -> None:
    assert models(secrets=("WANDB_KEY", "HF_TOKEN")).secrets == ("HF_TOKEN", "WANDB_KEY")


def test_a_wrong_secret_is_told_by_its_place_in_the_request() -> None:
    with pytest.raises(BadRequest) as caught:
        models(secrets=("OK", "A=hf_verysecret"))
    assert (caught.value.field, caught.value.value) == ("secrets.1", "")
    assert "verysecret" not in f"{caught.value.detail}{caught.value.advice}"
    with pytest.raises(BadRequest) as caught:
        models(env={"HF_TOKEN": "x"})
    assert caught.value.field == "env"


def test_a_request_may_only_lower_what_is_seen_of_the_models() -> None:
    assert models().model_cache is ModelCache.READ_ONLY
    assert models(model_cache="none").model_cache is ModelCache.NONE
    with pytest.raises(BadRequest, match="more than the recipe models allows, which is read-only") as caught:
        models(model_cache="shared")
    assert caught.value.advice.startswith("write none, read-only;")


def test_a_named_network_is_the_recipe_s_to_name() -> None:
    assert models().network == "models"
    assert models(network="models").network == "models"
    assert models(network="none").network == NO_NETWORK
    with pytest.raises(BadRequest, match="'other' is unknown") as caught:
        models(network="other")
    assert caught.value.advice == "one of none, bridge, models"


def test_the_process_sandbox_has_no_networks_of_container_engines() -> None:
    with pytest.raises(BadRequest, match="the process sandbox does not have") as caught:
        models(sandbox="process")
    assert caught.value.field == "network"
    assert models(sandbox="process", network="bridge").network == BRIDGE
    built = Recipe("built", build_command="make", build_network="builders")
    with pytest.raises(BadRequest, match="build_network: 'builders'"):
        complete(replace(PLAIN, project="built"), {"built": built}, POLICY)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16GiB", 16 << 30),
        ("512MiB", 512 << 20),
        ("64GB", 64 * 10**9),
        ("2g", 2 << 30),
        ("1.5 k", 1536),
        ("1024", 1024),
        (7, 7),
        ("9b", 9),
        ("3TiB", 3 << 40),
    ],
)
def test_sizes(text: str | float, value: int) -> None:
    assert size(text, field="x") == value


@given(st.text() | st.integers(0, 1 << 60).map(str) | st.floats())
def test_a_size_is_a_number_or_an_error_and_nothing_else(text: str | float) -> None:
    try:
        assert 0 < size(text, field="x") <= 1 << 50
    except BadRequest as error:
        assert error.field == "x"


@given(st.integers(1, 1 << 50))
def test_a_size_that_is_told_is_the_same_when_it_is_read(value: int) -> None:
    assert size(told(value), field="x") == value


@given(st.text())
def test_a_duration_is_a_number_or_an_error_and_nothing_else(text: str) -> None:
    try:
        assert 0 < seconds(text, field="x") < 30 * 86400
    except BadRequest as error:
        assert error.field == "x"


@given(st.floats(min_value=0, max_value=10**6))
def test_spoken_durations_never_say_sixty(value: float) -> None:
    assert not re.search(r"\b60(\.0)? (s|min)", spoken(value))


@given(
    st.builds(
        Submission,
        good=st.tuples(st.text()),
        bad=st.text(),
        repo=st.text(),
        script=st.text(),
        env=st.dictionaries(st.text(), st.text()),
        native_paths=st.none() | st.lists(st.text(min_size=1, max_size=8), max_size=2).map(tuple),
        as_of=st.none() | st.text(),
        constraints=st.none() | st.text(),
        fixups=st.lists(st.builds(Fixup, st.text(), st.text(), st.none()), max_size=1).map(tuple),
    )
)
def test_any_submission_is_completed_or_refused(submission: Submission) -> None:
    try:
        assert done(submission).bad in submission.bad
    except UserError as error:
        assert error.field
