"""Python and native code fit only together: an extension of another version is refused."""

from tinyserve import _native

#: Raised with every change below csrc/, together with csrc/version.h.
NATIVE_VERSION = 1

if _native.VERSION != NATIVE_VERSION:
    raise ImportError(
        f"tinyserve._native is of version {_native.VERSION}, this is for {NATIVE_VERSION}: build it again"
    )
