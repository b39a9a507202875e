/* Stamping: an iterator over a list that notes when each item is asked for, and the end. */

#pragma once

#include "layout.h"

typedef struct {
    PyObject_HEAD
    PyObject *items, *stamps; /* lists; NULL once it has ended */
    Py_ssize_t next;
} Stamping;

static int
stamping_traverse(Stamping *self, visitproc visit, void *arg)
{
    Py_VISIT(self->items);
    Py_VISIT(self->stamps);
    return 0;
}

static int
stamping_clear(Stamping *self)
{
    Py_CLEAR(self->items);
    Py_CLEAR(self->stamps);
    return 0;
}

static void
stamping_dealloc(Stamping *self)
{
    PyObject_GC_UnTrack(self);
    stamping_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
stamping_next(Stamping *self)
{
    if (self->items == NULL) {
        return NULL;
    }
    PyObject *stamp = PyLong_FromLongLong(now_ns());
    if (stamp == NULL) {
        return NULL;
    }
    int failed = PyList_Append(self->stamps, stamp);
    Py_DECREF(stamp);
    if (failed < 0) {
        return NULL;
    }
    if (self->next < PyList_GET_SIZE(self->items)) {
        return Py_NewRef(PyList_GET_ITEM(self->items, self->next++));
    }
    stamping_clear(self);
    return NULL;
}

static PyObject *
stamping_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *items, *stamps;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &items, &PyList_Type, &stamps)) {
        return NULL;
    }
    Stamping *self = (Stamping *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->items = Py_NewRef(items);
        self->stamps = Py_NewRef(stamps);
    }
    return (PyObject *)self;
}

static PyTypeObject StampingType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.Stamping",
    .tp_doc = "An iterator over a list that notes when each item is asked for, and the end.",
    .tp_basicsize = sizeof(Stamping),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = stamping_new,
    .tp_dealloc = (destructor)stamping_dealloc,
    .tp_traverse = (traverseproc)stamping_traverse,
    .tp_clear = (inquiry)stamping_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)stamping_next,
};
