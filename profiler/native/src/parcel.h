/* Parcel: a batch and its times, in main. */

#pragma once

#include "received.h"

static PyObject *
parcel_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *payload, *meta;
    long long unpack_ns;
    struct sent sent;
    if (!PyArg_ParseTuple(args, "OSL", &payload, &meta, &unpack_ns)) {
        return NULL;
    }
    if (PyBytes_GET_SIZE(meta) != META_BYTES) {
        PyErr_SetString(PyExc_ValueError, "an envelope of another length");
        return NULL;
    }
    Parcel *self = (Parcel *)type->tp_alloc(type, 0);
    if (self != NULL) {
        memcpy(&sent, PyBytes_AS_STRING(meta) + MARK_BYTES + sizeof(struct times), sizeof sent);
        self->payload = Py_NewRef(payload);
        self->meta = Py_NewRef(meta);
        self->pack_ns = sent.pack;
        self->t_sent_ns = sent.t_sent;
        self->pickled_bytes = sent.length;
        self->unpack_ns = unpack_ns;
        self->pin_ns = -1;
    }
    return (PyObject *)self;
}

static int
parcel_traverse(Parcel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->payload);
    return 0;
}

static int
parcel_clear(Parcel *self)
{
    Py_CLEAR(self->payload);
    return 0;
}

static void
parcel_dealloc(Parcel *self)
{
    PyObject_GC_UnTrack(self);
    parcel_clear(self);
    Py_XDECREF(self->meta);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
parcel_times(Parcel *self, void *Py_UNUSED(closure))
{
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self->meta) + MARK_BYTES, sizeof(struct times));
}

#define PARCEL_TIME(field) {#field, T_LONGLONG, offsetof(Parcel, field), 0, NULL}
static PyMemberDef parcel_members[] = {
    {"payload", T_OBJECT, offsetof(Parcel, payload), 0, "the batch"},
    PARCEL_TIME(pack_ns), PARCEL_TIME(t_sent_ns), PARCEL_TIME(pickled_bytes), PARCEL_TIME(unpack_ns),
    PARCEL_TIME(pin_ns),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef parcel_getset[] = {
    {"times", (getter)parcel_times, NULL, "what envelope.TIMES packs", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject ParcelType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.Parcel",
    .tp_doc = "A batch and its times (ns), in main.",
    .tp_basicsize = sizeof(Parcel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = parcel_new,
    .tp_dealloc = (destructor)parcel_dealloc,
    .tp_traverse = (traverseproc)parcel_traverse,
    .tp_clear = (inquiry)parcel_clear,
    .tp_members = parcel_members,
    .tp_getset = parcel_getset,
};
