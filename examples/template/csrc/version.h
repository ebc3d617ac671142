/* Raised with every change below csrc/, together with tinyserve/native_version.py. */
#define TS_NATIVE_VERSION 1
