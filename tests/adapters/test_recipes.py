"""Recipes from files: those that come along, an operator's own, and what is said of one that cannot be read."""

from dataclasses import fields
from pathlib import Path

import pytest

from service.adapters.recipes import BadRecipe, load
from service.domain.recipe import NO_NETWORK, Fixup, ModelCache, Recipe, Resources


def test_the_recipes_that_come_along() -> None:
    found = load()
    assert found["python"].build_command is not None
    assert found["source"].build_command is None
    assert all(recipe.network == NO_NETWORK for recipe in found.values())


def test_an_operator_s_recipe_goes_before_ours(tmp_path: Path) -> None:
    (tmp_path / "python.yaml").write_text("build_command: make wheel\nimage: builder:1\nbuild_timeout_s: 60\n")
    (tmp_path / "notes.txt").write_text("not a recipe")
    found = load(tmp_path)
    assert (found["python"].build_command, found["python"].image) == ("make wheel", "builder:1")
    assert sorted(found) == ["python", "source"]


def read(folder: Path, text: str) -> Recipe:
    (folder / "vllm.yaml").write_text(text)
    return load(folder)["vllm"]


def test_every_key_of_a_recipe(tmp_path: Path) -> None:
    recipe = read(
        tmp_path,
        """\
build_command: make wheel
build_network: none
build_timeout_s: 7200
image: builder:1
network: bridge
env: {BUILT_FROM: "{sha}"}
package: vllm
wheel_paths: [vllm/, csrc/, pyproject.toml]
native_paths: ["csrc/**", "!csrc/**/*.md"]
overlay_command: make overlay
wheel_indexes: ["https://wheels.example.org/{sha}/"]
deps:
  as_of: 2025-09-25
  constraints: |
    # pinned
    torch==2.8.0  # for CUDA 12

    numpy<2; python_version < "3.13"
fixups:
  - {range: v0.9.1..v0.9.2, cherry_pick: 1234abc}
  - range: v0.9.2~3..main
    patch: |
      --- a/setup.py
      +++ b/setup.py
resources: {gpus: 4, gpu: "H800|H100", shm: 16GiB, memory: 64GB, cpus: 7.5, pids: 8192, cpuset: '0-3,8',
  labels: [nvlink], models: [Qwen/Qwen3-8B]}
secrets: [HF_TOKEN]
model_cache: read-only
""",
    )
    assert {each.name for each in fields(Recipe) if getattr(recipe, each.name) == each.default} == set()
    assert recipe.native_paths == ("csrc/**", "!csrc/**/*.md")
    assert recipe.deps.as_of == "2025-09-25"
    assert recipe.fixups[0] == Fixup("v0.9.1..v0.9.2", cherry_pick="1234abc")
    assert recipe.resources == Resources(
        4, "H800|H100", 16 << 30, 64 * 10**9, 7.5, 8192, "0-3,8", None, ("nvlink",), ("Qwen/Qwen3-8B",)
    )
    assert (recipe.secrets, recipe.model_cache) == (("HF_TOKEN",), ModelCache.READ_ONLY)
    assert recipe.fixups[1].patch == "--- a/setup.py\n+++ b/setup.py\n"


@pytest.mark.parametrize("text", ["", "# nothing is built\n", "build_command: null\n"])
def test_a_recipe_may_say_nothing(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == Recipe("vllm")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("build_command: x\nnative_path: [a]", 2, "unknown key 'native_path'; did you mean 'native_paths'?"),
        ("bild-command: make", 1, "did you mean 'build_command'?"),
        ("\n\nqqqq: make", 3, "known here are build_command, build_network"),
        ("deps:\n  as_off: bad", 2, "did you mean 'as_of'?"),
        ("fixups:\n- range: a..b\n  pick: x", 3, "known here are cherry_pick, patch, range"),
        ("name: x", 1, "unknown key 'name'"),
        ("1: x", 1, "unknown key '1'"),
        ("\n- a list", 2, "a recipe is a mapping"),
        ("words", 1, "a recipe is a mapping"),
        ("a: b\n{", 2, "no YAML"),
        ("build_command: x\n\timage: y", 2, "no YAML"),
        ("build_command: x\nimage: !!python/object:os.system x", 2, "no YAML"),
        ("image: x\nimage: y", 2, "'image' is given twice"),
        ("? [a]\n: b", 1, "a key is no name"),
        ("env: {}\ndeps: &all\n  as_of: *all", 2, "holds itself"),
        ("image: x\nnetwork: w an", 2, "network: 'w an' is no name of a network; write none, bridge, or the name"),
        ("build_network: ''", 1, "build_network: '' is no name of a network"),
        ("resources:\n  gpus: four", 2, "resources.gpus is no whole number"),
        ("resources:\n  gpus: 65", 2, "resources.gpus: 65 cannot be had; it is a number of GPUs, 0 to 64"),
        ("resources:\n  gpus: 1\n  gpu: 'H100['", 3, "is no regular expression"),
        ("resources:\n  gpu: H100", 2, "resources.gpu is given, but no GPUs are asked for; add gpus"),
        ("resources:\n  cpus: 1\n  shm: lots", 3, "resources.shm: 'lots' is no size"),
        ("resources:\n  memory: 4MiB", 2, "too few to run in"),
        ("resources:\n  cpus: 0", 2, "resources.cpus: 0.0 cannot be had"),
        ("resources:\n  pids: 1", 2, "resources.pids: 1 cannot be had"),
        ("resources:\n  cpuset: 3", 2, "resources.cpuset is no text; write it in quotes"),
        ("resources:\n  cpuset: 3-0", 2, "holds '3-0', a range that ends before it begins; write CPUs as `lscpu`"),
        ("resources:\n  numa: 0\n  cpuset: '1'", 3, "resources has both cpuset and numa"),
        ("resources:\n  numa: 1024", 2, "resources.numa: 1024 is no node of memory"),
        ("resources:\n  shm_bytes: 1", 2, "unknown key 'shm_bytes'"),
        ("resources:\n  labels: nvlink", 2, "resources.labels is no list"),
        ("resources:\n  labels:\n  - good\n  - 'a,b'", 4, "'a,b' is no name of a label; write it as in"),
        ("resources: 4", 1, "resources is no mapping"),
        ("secrets: HF_TOKEN", 1, "secrets is no list"),
        ("secrets: [A, FIRSTBAD_REDIS_URL]", 1, "a variable of firstbad's own"),
        ("env: {A: x}\nsecrets: [A]", 2, "A is in env and in secrets"),
        ("model_cache: rw", 1, "model_cache: input should be 'none', 'read-only' or 'shared'"),
        ("build_timeout_s: soon", 1, "build_timeout_s is no number; write seconds, like 7200"),
        ("package: x\nbuild_timeout_s: 2h", 2, "write seconds, like 7200"),
        ("build_timeout_s: 0", 1, "write seconds, like 7200"),
        ("package: x\nbuild: make", 2, "unknown key 'build'; in a recipe it is called build_command"),
        ("overlay: make", 1, "unknown key 'overlay'; in a recipe it is called overlay_command"),
        ("env: {}\ndeps:\n  build: x", 3, "unknown key 'build'; known here are as_of"),
        ("build_timeout_s: 0", 1, "no time to build in"),
        ("build_timeout_s: .inf", 1, "no time to build in"),
        ("build_command: 7", 1, "build_command is no text; write it in quotes"),
        ("env:\n  A: x\n  B: 1", 3, "env.B is no text; write it in quotes"),
        ("build_command: x\nnative_paths: csrc/**", 2, "native_paths is no list; write it like [first, second]"),
        ("deps: today", 1, "deps is no mapping"),
        ("fixups: {range: a..b}", 1, "fixups is no list"),
        ("build_command: x\nnative_paths:\n- a/**\n- ../x", 4, "'../x' leads out of the repository"),
        ("build_command: x\nnative_paths:\n- a/**\n- /usr/include/**", 4, "leads out of the repository"),
        ("build_command: x\nwheel_paths:\n- a/**\n- a/[b", 4, "'a/[b' is no pattern; write it as in .gitignore"),
        ("build_command: x\nwheel_paths:\n- '!docs/**'", 3, "takes files out where no pattern takes any in"),
        ("native_paths: [a]", 1, "nothing is built; add a build command"),
        ("package: p\nwheel_indexes: ['https://example.org/{sha}']", 2, "nothing is built"),
        ("build_command: x\noverlay_command: y", 2, "overlay_command needs native_paths"),
        ("build_command: x\nwheel_indexes: ['https://example.org/{sha}']", 2, "wheel_indexes needs package"),
        ("package: -x", 1, "'-x' is no name of a package"),
        ("deps:\n  as_of: tomorrow", 2, "write one of bad, commit, today, or a date like 2025-09-25"),
        ("deps:\n  as_of: 2025-02-30", 2, "'2025-02-30' is no time"),
        ("deps:\n  as_of: 2025-09-25T10:00:00", 2, "is no time"),
        ("deps:\n  as_of: '20250925'", 2, "is no time"),
        ("deps:\n  constraints: |\n    numpy<2\n    -r more", 2, "its line 2: '-r more' is no constraint"),
        ("fixups:\n- range: a..b", 2, "exactly one of cherry_pick and patch"),
        ("fixups:\n- {range: a..b, cherry_pick: c, patch: '--- a'}", 2, "exactly one of cherry_pick and patch"),
        ("fixups:\n- {range: a..b, cherry_pick: c}\n- cherry_pick: c\n  range: a", 4, "fix-up: 'a' is no range"),
        ("fixups: [{cherry_pick: c}]", 1, "fixups.0.range is missing"),
        ("fixups:\n- range: a..b\n  cherry_pick: c..d", 3, "names no commit"),
        ("fixups:\n- range: a..b\n  patch: words", 3, "it is no patch"),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_be_used_names_the_file_and_the_line(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    with pytest.raises(BadRecipe) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"vllm.yaml, line {line}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("https://wheels.example.org/", "holds no {sha}"),
        ("https://wheels.example.org/{commit}/", "holds no {sha}"),
        ("https://wheels.example.org/{sha}/{version}/", "holds {version}"),
        ("https://wheels.example.org/{sha}/{", "holds {"),
        ("file:///wheels/{sha}/", "no http or https URL"),
        ("s3://wheels/{sha}/", "no http or https URL"),
        ("wheels.example.org/{sha}", "no http or https URL"),
        ("https:///{sha}", "no http or https URL"),
        ("https://[x/{sha}", "no URL"),
        ("https://wheels.example.org/a b/{sha}", "blanks"),
        ("https://{sha}.example.org/", "in its host"),
    ],
)
def test_a_wheel_index_is_an_address_with_the_commit_in_it(tmp_path: Path, template: str, said: str) -> None:
    with pytest.raises(BadRecipe, match="vllm.yaml, line 4: wheel_indexes: ") as caught:
        read(tmp_path, f"build_command: x\npackage: p\nwheel_indexes:\n- '{template}'")
    assert said in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize("written", ["a..b", "v1.0..v2.0", "072d7e5~3..HEAD^2", "a-b/c.d..main", "HEAD..x^{commit}"])
def test_ranges_of_fix_ups(tmp_path: Path, written: str) -> None:
    assert read(tmp_path, f"fixups: [{{range: '{written}', cherry_pick: c}}]").fixups[0].range == written


@pytest.mark.parametrize(
    "written", ["a", "a..", "..b", "a...b", "a..b..c", "a b..c", "-a..b", "a..-b", "..", "a.\\n.b"]
)
def test_what_is_no_range_of_a_fix_up(tmp_path: Path, written: str) -> None:
    with pytest.raises(BadRecipe, match="is no range"):
        read(tmp_path, f'fixups: [{{range: "{written}", cherry_pick: c}}]')


def test_a_recipe_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vllm.yaml").write_bytes("build_command: ä".encode("latin-1"))
    with pytest.raises(BadRecipe, match=r"vllm.yaml: byte 15 is not UTF-8"):
        load(tmp_path)


def test_a_secret_s_value_in_the_place_of_its_name_is_not_said_again(tmp_path: Path) -> None:
    with pytest.raises(BadRecipe, match="write the name alone, like HF_TOKEN") as caught:
        read(tmp_path, "image: x\nsecrets:\n- HF_TOKEN=hf_verysecret")
    assert "line 3" in str(caught.value)
    assert "verysecret" not in str(caught.value)


def test_a_recipe_may_name_any_network_of_the_nodes(tmp_path: Path) -> None:
    recipe = read(tmp_path, "network: models.internal\nbuild_network: builders-2")
    assert (recipe.network, recipe.build_network) == ("models.internal", "builders-2")
