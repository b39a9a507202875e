/* Noticing: what stands in the place of a method of tensors whose calls are noticed now and then. */

#pragma once

#include "layout.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *asked, *noticed;
    char on;
} Noticing;

static PyTypeObject NoticingType;

/* Off, and where no class or mode is asked about calls: the method itself. */
static PyObject *
noticing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Noticing *self = (Noticing *)callable;
    PyObject *call = self->noticed;
    if (!self->on) {
        size_t all = (size_t)PyVectorcall_NARGS(nargsf) + (kwnames == NULL ? 0 : (size_t)PyTuple_GET_SIZE(kwnames));
        PyObject *asked = PyObject_Vectorcall(self->asked, args, all, NULL);
        if (asked == NULL) {
            return NULL;
        }
        call = asked == Py_False ? self->original : call;
        Py_DECREF(asked);
    }
    Py_INCREF(call); /* it may be taken away meanwhile */
    PyObject *result = PyObject_Vectorcall(call, args, nargsf, kwnames);
    Py_DECREF(call);
    return result;
}

static PyObject *
noticing_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *original, *asked, *noticed;
    if (!PyArg_ParseTuple(args, "OOO", &original, &asked, &noticed)) {
        return NULL;
    }
    Noticing *self = (Noticing *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->call = noticing_call;
        self->original = Py_NewRef(original);
        self->asked = Py_NewRef(asked);
        self->noticed = Py_NewRef(noticed);
    }
    return (PyObject *)self;
}

static int
noticing_traverse(Noticing *self, visitproc visit, void *arg)
{
    Py_VISIT(self->original);
    Py_VISIT(self->asked);
    Py_VISIT(self->noticed);
    return 0;
}

static int
noticing_clear(Noticing *self)
{
    Py_CLEAR(self->original);
    Py_CLEAR(self->asked);
    Py_CLEAR(self->noticed);
    return 0;
}

static void
noticing_dealloc(Noticing *self)
{
    PyObject_GC_UnTrack(self);
    noticing_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
noticing_bind(PyObject *self, PyObject *tensor, PyObject *Py_UNUSED(owner))
{
    return tensor == NULL || tensor == Py_None ? Py_NewRef(self) : PyMethod_New(self, tensor);
}

static PyObject *
noticing_getattro(PyObject *self, PyObject *attribute)
{
    PyObject *found = PyObject_GenericGetAttr(self, attribute);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((Noticing *)self)->original, attribute);
    }
    return found;
}

static PyObject *
noticing_compare(PyObject *self, PyObject *other, int how)
{
    if (how != Py_EQ && how != Py_NE) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    int same = other == self || other == ((Noticing *)self)->original;
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t
noticing_hash(PyObject *self)
{
    return PyObject_Hash(((Noticing *)self)->original);
}

static PyObject *
noticing_repr(PyObject *self)
{
    return PyObject_Repr(((Noticing *)self)->original);
}

static PyObject *
noticing_doc(Noticing *self, void *Py_UNUSED(closure))
{
    return PyObject_GetAttrString(self->original, "__doc__");
}

/* Elsewhere, it is the method. */
static PyObject *
noticing_reduce(Noticing *self, PyObject *Py_UNUSED(unused))
{
    return PyObject_CallMethod(self->original, "__reduce__", NULL);
}

static PyMemberDef noticing_members[] = {
    {"on", T_BOOL, offsetof(Noticing, on), 0, "whether calls are noticed"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef noticing_getset[] = {
    {"__doc__", (getter)noticing_doc, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef noticing_methods[] = {
    {"__reduce__", (PyCFunction)noticing_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject NoticingType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.Noticing",
    .tp_basicsize = sizeof(Noticing),
    .tp_flags = METHOD_FLAGS,
    .tp_new = noticing_new,
    .tp_dealloc = (destructor)noticing_dealloc,
    .tp_traverse = (traverseproc)noticing_traverse,
    .tp_clear = (inquiry)noticing_clear,
    .tp_vectorcall_offset = offsetof(Noticing, call),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = noticing_bind,
    .tp_getattro = noticing_getattro,
    .tp_richcompare = noticing_compare,
    .tp_hash = noticing_hash,
    .tp_repr = noticing_repr,
    .tp_members = noticing_members,
    .tp_getset = noticing_getset,
    .tp_methods = noticing_methods,
};
