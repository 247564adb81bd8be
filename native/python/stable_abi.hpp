// Names of the full interface of Python that the stable one has under another.
#pragma once

#include <Python.h>

#if defined(Py_LIMITED_API)
#define PyFloat_AS_DOUBLE PyFloat_AsDouble
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_GET_SIZE PyTuple_Size
#define PyList_GET_ITEM PyList_GetItem
#define PyList_GET_SIZE PyList_Size
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_GET_SIZE PyBytes_Size
#define PyUnicode_GET_LENGTH PyUnicode_GetLength
#if Py_LIMITED_API < 0x030D0000
#define PyUnicode_AsUTF8(text) PyUnicode_AsUTF8AndSize(text, nullptr)
#endif
#endif
