/* The extension module tinyserve._native. */
#include "stable_abi.h"
#include "tinyserve.h"
#include "version.h"

#define MAX_TOKENS 4096
#define TOKEN_BYTES 8

static PyObject *generate(PyObject *self, PyObject *args) {
    const char *prompt;
    unsigned count;
    char text[MAX_TOKENS * TOKEN_BYTES];
    size_t length = 0;
    if (!PyArg_ParseTuple(args, "sI:generate", &prompt, &count)) {
        return NULL;
    }
    if (count > MAX_TOKENS) {
        PyErr_SetString(PyExc_ValueError, "at most 4096 tokens at once");
        return NULL;
    }
    uint64_t state = 0;
    for (const char *at = prompt; *at; at++) {
        state = ts_mix(state ^ (unsigned char)*at);
    }
    for (unsigned i = 0; i < count; i++) {
        state = ts_mix(state);
        length += ts_write_token(state, text + length);
    }
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
}

static PyObject *capture(PyObject *self, PyObject *args) {
    unsigned num_tokens, query_len;
    if (!PyArg_ParseTuple(args, "II:capture", &num_tokens, &query_len)) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(ts_capture(num_tokens, query_len));
}

static PyObject *weight(PyObject *self, PyObject *args) {
    unsigned layer, index;
    if (!PyArg_ParseTuple(args, "II:weight", &layer, &index)) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(ts_weight(layer, index));
}

static int add_constants(PyObject *module) {
    return PyModule_AddIntConstant(module, "VERSION", TS_NATIVE_VERSION);
}

static PyMethodDef METHODS[] = {
    {"generate", generate, METH_VARARGS, "generate(prompt, count): the text of count tokens after prompt"},
    {"capture", capture, METH_VARARGS, "capture(num_tokens, query_len): the key of the captured graph"},
    {"weight", weight, METH_VARARGS, "weight(layer, index): one weight as 32 bits"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, add_constants}, {0, NULL}};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_native", "Kernels of tinyserve.", 0, METHODS, SLOTS, NULL, NULL, NULL,
};

__attribute__((visibility("default"))) PyObject *PyInit__native(void) {
    return PyModuleDef_Init(&MODULE);
}
