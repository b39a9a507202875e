/* Hook: a callable that does something around another. */

#pragma once

#include "layout.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *base;    /* what would be called without us */
    PyObject *more[3]; /* what each kind of hook needs besides */
    int64_t t_last;    /* of those that remember a moment */
} Hook;

static int
hook_traverse(Hook *self, visitproc visit, void *arg)
{
    Py_VISIT(self->base);
    for (int i = 0; i < 3; i++) {
        Py_VISIT(self->more[i]);
    }
    return 0;
}

static int
hook_clear(Hook *self)
{
    Py_CLEAR(self->base);
    for (int i = 0; i < 3; i++) {
        Py_CLEAR(self->more[i]);
    }
    return 0;
}

static void
hook_dealloc(Hook *self)
{
    PyObject_GC_UnTrack(self);
    hook_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* In a class it is a method, as a function is. */
static PyObject *
hook_bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyMemberDef hook_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(Hook, base), READONLY, "what would be called without the hook"},
    {"t_last", T_LONGLONG, offsetof(Hook, t_last), READONLY, "the moment it remembers, ns"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject HookType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.Hook",
    .tp_doc = "A callable that looks at the clock around another.",
    .tp_basicsize = sizeof(Hook),
    .tp_flags = METHOD_FLAGS,
    .tp_dealloc = (destructor)hook_dealloc,
    .tp_traverse = (traverseproc)hook_traverse,
    .tp_clear = (inquiry)hook_clear,
    .tp_vectorcall_offset = offsetof(Hook, call),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = hook_bind,
    .tp_members = hook_members,
};

#define RECORDS_TOLD (layout.record > 0)
#define ENVELOPES_TOLD (layout.seal != NULL)

static PyObject *
hook_new(vectorcallfunc call, int told, PyObject *base, PyObject *first, PyObject *second, PyObject *third)
{
    if (!told) {
        PyErr_SetString(PyExc_RuntimeError, "the layout has not been told");
        return NULL;
    }
    Hook *self = PyObject_GC_New(Hook, &HookType);
    if (self == NULL) {
        return NULL;
    }
    self->call = call;
    self->base = Py_NewRef(base);
    self->more[0] = Py_XNewRef(first);
    self->more[1] = Py_XNewRef(second);
    self->more[2] = Py_XNewRef(third);
    self->t_last = 0;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}
