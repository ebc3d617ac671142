"""What a log may show of the node, the request or the dependencies: one table of rules.

A rule sees; it does not judge. What a sign means is the service's to say, by the rule's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import re2

from worker.observe.foreign import foreign, ours
from worker.observe.lines import readable, without_stamp


@dataclass(frozen=True)
class Rule:
    """`sees`: for the docs. `patterns`: any of them, by RE2, in a line without its prefixes, without `^`. A group
    `owner` must name a package that is not the project's; so must `library`.

    `but`: what a line must not hold. `late`: patterns that count only where a line that `behind` finds stands shortly
    before. `unless`: a line anywhere before it takes the rule out. `warned`: counts at the level of a warning, too.
    """

    name: str
    sees: str
    patterns: tuple[re2._Regexp[str], ...]
    but: re2._Regexp[str] | None = None
    late: tuple[re2._Regexp[str], ...] = ()
    behind: re2._Regexp[str] | None = None
    unless: re2._Regexp[str] | None = None
    warned: bool = False

    def found(self, text: str, project: tuple[str, ...], *, late: bool = False) -> bool:
        """Without its context. `late`: the patterns of that name count as well."""
        patterns = self.patterns + self.late if late else self.patterns
        hit = any(_foreign(match, project) for pattern in patterns for match in pattern.finditer(text))
        return hit and not (self.but is not None and self.but.search(text))

    def needs(self) -> Iterator[str]:
        """Patterns of all lines that the rule has to be told of."""
        yield from (pattern.pattern for pattern in (*self.patterns, *self.late))
        yield from (pattern.pattern for pattern in (self.behind, self.unless) if pattern is not None)


def _foreign(match: re2._Match[str], project: tuple[str, ...]) -> bool:
    known = match.groupdict()
    if (library := known.get("library")) is not None:
        return not ours(library, project)
    return (owner := known.get("owner")) is None or foreign(owner, project)


def _rule(
    name: str, sees: str, *patterns: str, but: str = "", behind: str = "", late: tuple[str, ...] = (),
    unless: str = "", warned: bool = False,
) -> Rule:  # fmt: skip
    but_, behind_, unless_ = (re2.compile(text) if text else None for text in (but, behind, unless))
    found, later = (tuple(re2.compile(pattern) for pattern in group) for group in (patterns, late))
    return Rule(name, sees, found, but_, later, behind_, unless_, warned)


#: Of those that take the node out: not 13, 31, 43 or 45, which a program brings about by itself.
_XID = r"(?:48|6[124]|74|79|92|9[45]|119|12[01]|140|143)"
#: A server of the run itself: what it answers is the commit's doing.
_HERE = r"(?i)(?://|host=')(?:localhost|127\.|0\.0\.0\.0|\[?::1|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|[\w-]+(?::\d+|[/']|$))"
_SERVERS = r"(?:429 Client|5\d\d Server) Error"
#: Symbols of libraries that packages are compiled against: torch, CUDA, NCCL, the C++ library, Python.
_SYMBOLS = (
    r"(?:_ZN[KRO]*(?:2at|3c10|4c10d|5torch|6caffe2|St)\w*|_ZT[ISV]N?(?:2at|3c10|5torch|6caffe2)\w*|_ZSt\w+"
    r"|_?Py[A-Z_]\w+|cu(?:blas|dnn|sparse|solver|fft|rand|da|tensor)\w*|cu[A-Z]\w+|nccl[A-Z]\w+|__nvJitLink\w+"
    r"|nvrtc\w+|(?:GOMP|omp|MPI|aoti)_\w+|hip[A-Z]\w+)"
)
#: Plug-ins that are looked for in vain are no failure.
_LOADING = r"(?:ImportError|OSError|RuntimeError|error while loading shared libraries):"

#: The first that sees a line has it alone, so what is more specific stands first.
RULES: tuple[Rule, ...] = (
    _rule(
        "gpu-broken",
        "a GPU or its link failed: Xid of hardware, uncorrectable ECC or NVLink errors, a GPU off the bus",
        rf"\bXid \(PCI:[^)]*\): {_XID}\b|\bSXid \(PCI:[^)]*\): \d+, Fatal",
        rf"\bX[Ii][Dd](?: error)?(?: code)?[ :=]+{_XID}\b",
        r"(?i)uncorrectable (?:ECC|NVLink) error",
        r"CUDA_ERROR_(?:ECC|NVLINK)_UNCORRECTABLE|cudaError(?:ECC|Nvlink)Uncorrectable",
        r"GPU has fallen off the bus|GPU is lost|NVML_ERROR_GPU_IS_LOST|NVMLError_GpuIsLost",
        r"cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|[Ee]rror(?: 802)?: system not yet initialized",
        warned=True,
    ),
    _rule(
        "driver-too-old",
        "the driver is older than the CUDA runtime, or than what it was asked to load",
        r"driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver",
        r"NVIDIA driver on your system is too old",
        r"provided PTX was compiled with an unsupported toolchain|(?i:CUDA_?ERROR_?UNSUPPORTED_?PTX_?VERSION)",
        r"unsatisfied condition: cuda ?>=|forward compatibility was attempted on non supported HW",
        r"unsupported display driver / cuda driver combination|Driver/library version mismatch",
    ),
    _rule(
        "no-kernel-image",
        "nothing was compiled for this GPU's architecture, or the GPU is of a class that cannot do it",
        r"no kernel image is available for execution on the device|cudaErrorNoKernelImageForDevice",
        r"CUDA_ERROR_NO_BINARY_FOR_GPU|has no device code compatible with CUDA arch",
        r"is not compatible with the current PyTorch installation",
        r"\b(?:sm_\d+\w?|compute capability \(?\d+[., ]+\d+\)?) is not supported",
        r"only supports (?:Ampere|Hopper|Blackwell) GPUs|only supported on GPUs with compute capability",
    ),
    _rule(
        "gpu-missing",
        "the run found no GPU or no driver",
        r"No CUDA GPUs are available|no CUDA-capable device is detected|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE",
        rf"Found no NVIDIA driver|{_LOADING} libcuda\.so(?:\.1)?: cannot open shared object file",
        r"could not select device driver|unresolvable CDI devices|failed to discover GPU vendor from CDI",
        r"NVIDIA-SMI has failed because|nvidia-container-cli: initialization error",
        r"NVML_ERROR_(?:DRIVER_NOT_LOADED|LIBRARY_NOT_FOUND)|NVMLError_(?:DriverNotLoaded|LibraryNotFound)",
    ),
    _rule(
        "gpu-memory-wanted",
        "less GPU memory was free than the server wants at its start, or than the model's weights need",
        r"on startup is less than desired GPU memory utilization",
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        r"Error in memory profiling\. Initial free memory|Some GPUs may be occupied by other processes",
        r"out of memory\..*Process \d+ has .* in use\..*(?:Process \d+|this process) has ",
        r"unable to allocate (?:CUDA|ROCm|HIP)\d+ buffer",
        late=(r"(?:CUDA|HIP) out of memory",),
        behind=r"line \d+, in (?:load_model|load_weights|_?initialize_model|create_weights|from_pretrained)\b",
    ),
    _rule(
        "gpu-out-of-memory",
        "GPU memory ran out elsewhere",
        r"(?:CUDA|HIP) out of memory|torch\.(?:cuda\.)?OutOfMemoryError|(?:CUDA|HIP) error: out of memory",
        r"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|CUBLAS_STATUS_ALLOC_FAILED",
        r"cudaMalloc failed: out of memory|RESOURCE_EXHAUSTED: Out of memory",
    ),
    _rule(
        "engine-down",
        "a container engine did not answer the script",
        r"Cannot connect to (?:the Docker daemon|Podman)|Is the docker daemon running",
        r"dial unix \S*(?:docker|podman|containerd)\.sock: connect: |failed to connect to the docker API",
        r"Error while fetching server API version",
    ),
    _rule(
        "image-pull",
        "an image could not be pulled: a limit, no access, or not there",
        r"toomanyrequests: |reached your (?:unauthenticated )?pull rate limit",
        r"manifest unknown|manifest for \S+ not found|no matching manifest for ",
        r"pull access denied for |ErrImagePull|ImagePullBackOff|[Ff]ailed to pull image",
        r"error pulling image configuration|failed to resolve reference \"|initializing source docker://",
        r"Error response from daemon: (?:Get|Head) \"?https://",
    ),
    _rule(
        "model-gated",
        "a model or data set is gated, or its token is missing or wrong",
        r"Cannot access gated repo|GatedRepoError|trying to access a gated repo",
        r"Access to (?:model|dataset) \S+ is restricted|You need to (?:agree|have access|share your)",
        r"request to access (?:model|dataset) \S+ is awaiting a review",
        r"You must have access to it and be authenticated|Invalid user token|LocalTokenNotFoundError",
        r"Token is required .* but no token found|User Access Token .* is expired|HF_TOKEN\b.* (?:is )?not set",
        r"40[13] (?:Client Error|Forbidden|Unauthorized).*https://(?:[\w-]+\.)*(?:huggingface\.co|hf\.co|modelscope\.cn)",
        r"HfHubHTTPError: 40[13]\b",
        but=r"Repository Not Found|RepositoryNotFoundError|If you are trying to access|RevisionNotFoundError",
    ),
    _rule(
        "model-missing",
        "a hub knows no such model, data set or revision",
        r"RepositoryNotFoundError|Repository Not Found for url|RevisionNotFoundError|Revision Not Found for url",
        r"is not a local folder and is not a valid model identifier|is not a valid git identifier \(branch name",
        r"DatasetNotFoundError|invalid http status code received: 404|pull model manifest: file does not exist",
    ),
    _rule(
        "clock",
        "a clock is wrong: certificates or signatures that are not valid yet",
        r"certificate (?:has expired or )?is not yet valid|CERT_NOT_YET_VALID",
        r"Release file for .* is not (?:valid yet|yet valid)|token is not yet valid|Signature not yet current",
        r"RequestTimeTooSkewed|difference between the request time and the current time|[Cc]lock skew too ",
    ),
    _rule(
        "dns",
        "a name could not be resolved",
        r"[Tt]emporary failure (?:in name resolution|resolving)|[Nn]ame or service not known|NameResolutionError",
        r"nodename nor servname provided|No address associated with hostname|Could not contact DNS servers",
        r"[Cc]ould ?n[o']t resolve (?:host|proxy)|getaddrinfo (?:failed|EAI_AGAIN|ENOTFOUND)|failed to lookup address",
        r"lookup \S+(?: on \S+)?: (?:no such host|server misbehaving|i/o timeout)|UnknownHostException",
        but=r"(?i)resolve host:? '?localhost",
    ),
    _rule(
        "download",
        "a download failed: 429, 5xx, a time-out, or no way to the hub; not what the run's own server answers",
        rf"\b{_SERVERS}.* for url: https?://|HfHubHTTPError: (?:{_SERVERS}|429|5\d\d)\b",
        r"\b(?:429|5\d\d), message='[^']*', url=(?:URL\()?'https?://",
        r"(?:Server|Client) error '(?:429|5\d\d) [^']*' for url 'https?://",
        r"HTTPSConnectionPool\(host='[^']+', port=\d+\): (?:Max retries exceeded|Read timed out)",
        r"Cannot connect to host \S+:443 ssl:|Couldn't reach (?:https?://|'[^']+' on the Hub)",
        r"We couldn't connect to 'https?://|LocalEntryNotFoundError",
        r"trying to locate the files? on the Hub|[Cc]annot find the requested files in the (?:local|disk) cache",
        r"Consistency check failed: file should be of size|Error while downloading from https?://",
        r"error occurred while downloading using `hf_transfer`|Data processing error: (?:CAS|Reqwest)",
        r"HTTP status (?:client|server) error \((?:429|5\d\d)[^)]*\) for url \(https?://|GET failed \((?:429|5\d\d)\)",
        r"invalid http status code received: (?:429|5\d\d)|Could not connect to the endpoint URL",
        r"unable to access 'https?://[^']+': (?:Failed to connect|Operation timed out|.* returned error: (?:429|5))",
        r"error sending request for url \(https://|Failed to fetch: `https?://",
        but=_HERE,
    ),
    _rule(
        "too-many-files",
        "the limit of open files, or of watched ones, was reached",
        r"[Tt]oo many open files|\bE[MN]FILE\b|\[Errno 24\]|file watchers reached|inotify watch limit reached",
    ),
    _rule(
        "shm-full",
        "shared memory (`/dev/shm`) was used up",
        r"killed by signal: Bus error|insufficient shared memory \(shm\)|raise your shared memory limit",
        r"unable to open shared memory object|unable to (?:mmap|resize|write|allocate) \S*.*(?:</torch_|<filename not)",
        r"/dev/shm\b.*No space left|No space left.*/dev/shm\b|could not resize shared memory segment",
        r"failed to extend /dev/shm/|[Ee]rror while (?:creating|attaching to) shared memory segment",
    ),
    _rule(
        "disk-full",
        "no space, or no quota, is left on a disk",
        r"[Nn]o space left on device|\bENOSPC\b|[Dd]isk quota exceeded|\bEDQUOT\b|database or disk is full",
        r"[Nn]ot enough free disk space|don't have enough free space in |There is not enough space on the disk",
    ),
    _rule(
        "killed-by-oom",
        "the kernel, or whoever watches over memory, killed a process for it",
        r"[Oo]ut of memory: Kill(?:ed)? process \d+|invoked oom-killer|oom-kill:constraint=|oom_reaper: reaped process",
        r"killed as a result of limit of |killed by the OOM killer|Reason: +OOMKilled|\boom_kill event",
        r"killed due to (?:the node running low on memory|memory pressure)",
        warned=True,
    ),
    _rule(
        "nccl-watchdog",
        "a collective operation took longer than its watchdog allows",
        r"Watchdog caught collective operation timeout|[Hh]eartbeat monitor timed out",
        r"dump signal due to a collective timeout|watchdog got stuck for \d+",
    ),
    _rule(
        "nccl-init",
        "NCCL could not start or reach its peers",
        r"ncclSystemError|ncclInternalError|unhandled system error|NCCL error(?: in)?: .*internal error",
        r"Bootstrap ?: no socket interface found|NCCL WARN .*(?:[Bb]ootstrap|no socket interface)",
        r"NCCL WARN .*(?:socket\w*Connect|[Cc]onnect to \S+ failed|NET/IB : Got (?:completion|async))",
        r"NCCL WARN .*[Cc]all to (?:connect|ibv_\w+) .*(?:failed|returned)",
    ),
    _rule(
        "port-in-use",
        "a port was taken",
        r"[Aa]ddress (?:is )?already in use|\bEADDRINUSE\b|port is already allocated",
        r"(?i:\bport \d+ (?:is |was )?(?:already |currently )?(?:in use|taken|occupied|allocated|used by))",
        r"couldn't bind HTTP server socket|Cannot find empty port in range|Only one usage of each socket address",
        but=r"(?i)try(?:ing)? (?:another|the next|next|port|a different)|us(?:e|ing) (?:another|port|a random|random)",
    ),
    _rule(
        "test-missing",
        "the test, or the file that was to be run, is not in that commit",
        r"file or directory not found: \S|not found: \S+::\S|can't open file '[^']+': \[Errno 2\]",
        r"python[\d.]*: No module named (?:tests?|benchmarks?|examples?)\b",
        r"sh: (?:line )?(?:\d+: )?\S*(?:tests?|benchmarks?|examples?)/\S+: (?:No such file or directory|not found)",
        r"No tests? (?:files )?found, exiting with code|[Nn]o test files found|no test target (?:named|matches)",
        r"No tests (?:were found!!!|found for given includes|were executed!)|no such test method in",
        r"\*\*\* No rule to make target ['`](?:test|check|bench)",
        r"\bno tests ran in \d",
        unless=r"INTERNALERROR> |!{3,} |[Ee]rrors? during collection|ImportError while loading conftest",
    ),
    _rule(
        "drift",
        "a dependency is another one than the commit was made for: a symbol, name, module or version is not there",
        r"packages/(?P<owner>\w+)[^:\s]*\.so[^:\s]*: undefined symbol: ",
        rf"\.so[^:\s]*: undefined symbol: {_SYMBOLS}|symbol lookup error: .*undefined symbol: {_SYMBOLS}",
        r"cannot import name '?\w+'? from '(?P<owner>[\w.]+)'",
        r"module '(?P<owner>[\w.]+)' has no attribute '",
        r"No module named '?(?P<owner>[\w.]+)",
        r"VersionConflict: \((?P<owner>[\w.-]+) ",
        r"DistributionNotFound: The '(?P<owner>[\w.-]+)",
        r"PackageNotFoundError: (?:No package metadata was found for )?(?P<owner>[\w-]+)",
        r"(?P<owner>[\w-]+)(?:[<>=!~]\S*)? is required for a normal functioning of this module, but found",
        r"numpy\.\w+ size changed, may indicate binary incompatibility|compiled using NumPy 1\.x cannot be run in",
        r"numpy\.core\.multiarray failed to import|_ARRAY_API not found|module compiled against A[BP]I version",
        r"version [`'](?:GLIBCXX|CXXABI|GLIBC|GCC)_[\d.]+' not found",
        rf"{_LOADING} lib(?P<library>\w+)[^:\s]*\.so[^:\s]*: cannot open shared object file",
        r"operator (?P<owner>\w+)::\w+ does not exist|compiled with different CUDA major versions",
        but=r"partially initialized module|circular import|libcuda\.so",
    ),
)  # fmt: skip


def out_of_space(lines: Iterable[bytes]) -> bool:
    """A tool said that the disk is full."""
    full = next(rule for rule in RULES if rule.name == "disk-full")
    texts = (readable(without_stamp(line)) for line in lines)
    return any(full.found(text, ()) and _first(text) is full for text in texts)


def _first(text: str) -> Rule | None:
    return next((rule for rule in RULES if rule.found(text, ())), None)
