/* LaneState: what the hot path needs of a lane. */

#pragma once

#include "errors.h"
#include "layout.h"

typedef struct {
    PyObject_HEAD
    long long count, capacity, first;
    PyObject *buf, *committed;
    /* Held as long as they are the lane's: while C knows an address, the memory behind it stays mapped. */
    Py_buffer records, counter;
    int counter_mapped; /* the count is eight bytes of memory; otherwise something with a __setitem__ */
} LaneState;

static PyObject *
lane_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return type->tp_alloc(type, 0); /* zeroed: no buffer, no room */
}

static int
lane_traverse(LaneState *self, visitproc visit, void *arg)
{
    Py_VISIT(self->buf);
    Py_VISIT(self->committed);
    /* Not the references that `records` and `counter` hold: a memoryview with an export must not be cleared by the
     * garbage collector before that is released (Python 3.10 crashes), and an uncounted reference keeps it out. */
    return 0;
}

static int
lane_clear(LaneState *self)
{
    self->counter_mapped = 0;
    PyBuffer_Release(&self->counter); /* does nothing where there is none */
    PyBuffer_Release(&self->records);
    self->records.buf = self->counter.buf = NULL;
    self->records.len = 0;
    Py_CLEAR(self->committed);
    Py_CLEAR(self->buf);
    return 0;
}

static void
lane_dealloc(LaneState *self)
{
    PyObject_GC_UnTrack(self);
    lane_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
lane_get(PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "not set yet");
        return NULL;
    }
    return Py_NewRef(value);
}

static PyObject *
lane_get_buf(LaneState *self, void *Py_UNUSED(closure))
{
    return lane_get(self->buf);
}

static int
lane_set_buf(LaneState *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_buffer fresh, old = self->records;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "buf cannot be deleted");
        return -1;
    }
    if (PyObject_GetBuffer(value, &fresh, PyBUF_WRITABLE) < 0) {
        return -1;
    }
    self->records = fresh;
    /* Last: letting go may unmap, and run code. */
    PyObject *old_object = self->buf;
    self->buf = Py_NewRef(value);
    PyBuffer_Release(&old);
    Py_XDECREF(old_object);
    return 0;
}

static PyObject *
lane_get_committed(LaneState *self, void *Py_UNUSED(closure))
{
    return lane_get(self->committed);
}

static int
lane_set_committed(LaneState *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_buffer fresh = {0}, old = self->counter;
    int mapped = 0;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "committed cannot be deleted");
        return -1;
    }
    if (PyMemoryView_Check(value)) {
        if (PyObject_GetBuffer(value, &fresh, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_ND) < 0) {
            return -1;
        }
        mapped = fresh.len >= 8 && fresh.format != NULL && strcmp(fresh.format, "Q") == 0 &&
                 (uintptr_t)fresh.buf % 8 == 0;
        if (!mapped) {
            PyBuffer_Release(&fresh);
            memset(&fresh, 0, sizeof fresh);
        }
    }
    self->counter = fresh;
    self->counter_mapped = mapped;
    PyObject *old_object = self->committed;
    self->committed = Py_NewRef(value);
    PyBuffer_Release(&old);
    Py_XDECREF(old_object);
    return 0;
}

static PyMemberDef lane_members[] = {
    {"count", T_LONGLONG, offsetof(LaneState, count), 0, "records in this segment"},
    {"capacity", T_LONGLONG, offsetof(LaneState, capacity), 0, "records that fit this segment"},
    {"first", T_LONGLONG, offsetof(LaneState, first), 0, "seq of this segment's first record"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef lane_getset[] = {
    {"buf", (getter)lane_get_buf, (setter)lane_set_buf, "header and records", NULL},
    {"committed", (getter)lane_get_committed, (setter)lane_set_committed, "[0] is the published count", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject LaneStateType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.LaneState",
    .tp_doc = "What the hot path needs of a lane.",
    .tp_basicsize = sizeof(LaneState),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = lane_new,
    .tp_dealloc = (destructor)lane_dealloc,
    .tp_traverse = (traverseproc)lane_traverse,
    .tp_clear = (inquiry)lane_clear,
    .tp_members = lane_members,
    .tp_getset = lane_getset,
};

/* Where the next record goes, its number in `*n`; NULL with an error set where that is outside the lane's memory. */
static char *
lane_slot(LaneState *lane, int64_t *n)
{
    *n = lane->count;
    if (*n >= lane->capacity) {
        PyThreadState *thread = go_unseen();
        PyObject *rolled = PyObject_CallMethodNoArgs((PyObject *)lane, name.roll);
        be_seen(thread);
        if (rolled == NULL) {
            return NULL;
        }
        *n = PyLong_AsLongLong(rolled);
        Py_DECREF(rolled);
        if (*n == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    if (*n < 0 || lane->records.buf == NULL || *n >= (lane->records.len - layout.header) / layout.record) {
        PyErr_Format(PyExc_RuntimeError, "record %lld is outside its segment", (long long)*n);
        return NULL;
    }
    return (char *)lane->records.buf + layout.header + *n * layout.record;
}

/* The next record's memory was last touched long ago, if ever: have it brought near before it is written to. */
static void
lane_near(LaneState *lane)
{
    int64_t n = lane->count;
    if (n >= 0 && n < lane->capacity && lane->records.buf != NULL) {
        const char *at = (const char *)lane->records.buf + layout.header + n * layout.record;
        __builtin_prefetch(at, 1);
        __builtin_prefetch(at + 63, 1);
        if (lane->counter_mapped) {
            __builtin_prefetch(lane->counter.buf, 1);
        }
    }
}

/* Publish `n` records: what was written before is seen by whoever sees the count. */
static int
lane_publish(LaneState *lane, int64_t n)
{
    if (lane->counter_mapped) {
        __atomic_store_n((uint64_t *)lane->counter.buf, (uint64_t)n, __ATOMIC_RELEASE);
    }
    else {
        if (lane->committed == NULL) {
            PyErr_SetString(PyExc_AttributeError, "committed");
            return -1;
        }
        PyObject *count = PyLong_FromLongLong(n);
        if (count == NULL) {
            return -1;
        }
        int failed = PyObject_SetItem(lane->committed, name.zero, count);
        Py_DECREF(count);
        if (failed < 0) {
            return -1;
        }
    }
    lane->count = n;
    return 0;
}
