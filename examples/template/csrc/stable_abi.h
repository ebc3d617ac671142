/* What tinyserve uses of Python's stable ABI (3.11 and later, PEP 384), declared here so that a build needs a
 * compiler alone and no installed Python headers. */
#ifndef TINYSERVE_STABLE_ABI_H
#define TINYSERVE_STABLE_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef intptr_t Py_ssize_t;

typedef struct PyObject {
    Py_ssize_t ob_refcnt;
    void *ob_type;
} PyObject;

typedef PyObject *(*PyCFunction)(PyObject *self, PyObject *args);

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;

typedef struct {
    PyObject ob_base;
    PyObject *(*m_init)(void);
    Py_ssize_t m_index;
    PyObject *m_copy;
    const char *m_name;
    const char *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    PyModuleDef_Slot *m_slots;
    void *m_traverse;
    void *m_clear;
    void *m_free;
} PyModuleDef;

#define PyModuleDef_HEAD_INIT {1, NULL}, NULL, 0, NULL
#define METH_VARARGS 0x0001
#define Py_mod_exec 2

extern PyObject *PyExc_ValueError;

int PyArg_ParseTuple(PyObject *args, const char *format, ...);
void PyErr_SetString(PyObject *type, const char *message);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long value);
int PyModule_AddIntConstant(PyObject *module, const char *name, long value);
PyObject *PyModuleDef_Init(PyModuleDef *definition);
PyObject *PyUnicode_FromStringAndSize(const char *text, Py_ssize_t size);

#endif
