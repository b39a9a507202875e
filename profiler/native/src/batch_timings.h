/* BatchTimings: the batch in hand. */

#pragma once

#include "lane_state.h"

typedef struct {
    PyObject_HEAD
    long long t_fetch, t_collate, t_collated, t_cpu_fetch, t_cpu_collate, t_index, taken, samples, epoch, tasks;
    char detailed, special;
    PyObject *lane, *device, *envelope, *drawn, *looks;
    /* Of a batch whose record was begun as it came out of its envelope, see `begin_record`. */
    struct {
        char *at; /* NULL: none was */
        struct times times;
        int64_t index_ns, samples, waiting;
    } begun;
} BatchTimings;

static PyObject *
timings_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    BatchTimings *self = (BatchTimings *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->detailed = self->special = 1;
        self->samples = -1;
        self->lane = Py_NewRef(Py_None);
        self->device = Py_NewRef(Py_None);
        self->envelope = Py_NewRef(Py_None);
        self->drawn = Py_NewRef(Py_None);
        self->looks = Py_NewRef(Py_None);
    }
    return (PyObject *)self;
}

static int
timings_traverse(BatchTimings *self, visitproc visit, void *arg)
{
    Py_VISIT(self->lane);
    Py_VISIT(self->device);
    Py_VISIT(self->envelope);
    Py_VISIT(self->drawn);
    Py_VISIT(self->looks);
    return 0;
}

static int
timings_clear(BatchTimings *self)
{
    Py_CLEAR(self->lane);
    Py_CLEAR(self->device);
    Py_CLEAR(self->envelope);
    Py_CLEAR(self->drawn);
    Py_CLEAR(self->looks);
    return 0;
}

static void
timings_dealloc(BatchTimings *self)
{
    PyObject_GC_UnTrack(self);
    timings_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Flags take any value by its truth, as a Python attribute would. */
static PyObject *
timings_get_flag(BatchTimings *self, void *closure)
{
    return PyBool_FromLong(*((char *)self + (Py_ssize_t)closure));
}

static int
timings_set_flag(BatchTimings *self, PyObject *value, void *closure)
{
    int truth = value == NULL ? -1 : PyObject_IsTrue(value);
    if (truth < 0) {
        if (value == NULL) {
            PyErr_SetString(PyExc_AttributeError, "a flag cannot be deleted");
        }
        return -1;
    }
    *((char *)self + (Py_ssize_t)closure) = (char)truth;
    return 0;
}

#define TIMINGS_TIME(field) {#field, T_LONGLONG, offsetof(BatchTimings, field), 0, NULL}
#define TIMINGS_OBJECT(field) {#field, T_OBJECT_EX, offsetof(BatchTimings, field), 0, NULL}
static PyMemberDef timings_members[] = {
    TIMINGS_TIME(t_fetch), TIMINGS_TIME(t_collate), TIMINGS_TIME(t_collated), TIMINGS_TIME(t_cpu_fetch),
    TIMINGS_TIME(t_cpu_collate), TIMINGS_TIME(t_index), TIMINGS_TIME(taken), TIMINGS_TIME(samples), TIMINGS_TIME(epoch),
    TIMINGS_TIME(tasks), TIMINGS_OBJECT(lane), TIMINGS_OBJECT(device), TIMINGS_OBJECT(envelope), TIMINGS_OBJECT(drawn),
    TIMINGS_OBJECT(looks),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef timings_getset[] = {
    {"detailed", (getter)timings_get_flag, (setter)timings_set_flag, NULL, (void *)offsetof(BatchTimings, detailed)},
    {"special", (getter)timings_get_flag, (setter)timings_set_flag, NULL, (void *)offsetof(BatchTimings, special)},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject BatchTimingsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.BatchTimings",
    .tp_doc = "The clock readings of the batch being made.",
    .tp_basicsize = sizeof(BatchTimings),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = timings_new,
    .tp_dealloc = (destructor)timings_dealloc,
    .tp_traverse = (traverseproc)timings_traverse,
    .tp_clear = (inquiry)timings_clear,
    .tp_members = timings_members,
    .tp_getset = timings_getset,
};

/* The iterator whose `__next__` was entered last, its timings, and the fetcher it has handed indices to. They spare the
   look-ups of the calls inside. Borrowed, and compared before use: whoever enters sets them and whoever leaves clears
   them, so that what they name is alive as long as they name it, in whichever order threads take turns. */
static struct {
    PyObject *iterator, *fetcher;
    BatchTimings *timings;
} entered;

/* The iterator's timings: a new reference, NULL without an error where it has none, NULL with one on failure. */
static BatchTimings *
timings_of(PyObject *iterator)
{
    if (iterator == entered.iterator) {
        return (BatchTimings *)Py_NewRef((PyObject *)entered.timings);
    }
    PyObject *timings = PyObject_GetAttr(iterator, name.ls);
    if (timings == NULL || PyObject_TypeCheck(timings, &BatchTimingsType)) {
        return (BatchTimings *)timings;
    }
    Py_DECREF(timings);
    return NULL;
}

static LaneState *
lane_of(BatchTimings *timings)
{
    if (timings->lane == NULL || !PyObject_TypeCheck(timings->lane, &LaneStateType)) {
        PyErr_SetString(PyExc_TypeError, "an iteration without a lane");
        return NULL;
    }
    return (LaneState *)Py_NewRef(timings->lane);
}

/* How many samples the indices stand for: as torch without automatic batching, one; -1 where that is not plain. */
static int
samples_of(PyObject *iterator, PyObject *index, long long *samples)
{
    if (PyList_CheckExact(index)) {
        *samples = PyList_GET_SIZE(index);
        return 0;
    }
    if (strcmp(Py_TYPE(index)->tp_name, "numpy.ndarray") == 0) { /* its length is no code of the user's */
        *samples = PySequence_Size(index);
        if (*samples >= 0) {
            return 0;
        }
        PyErr_Clear(); /* a single number */
    }
    PyObject *batching = PyObject_GetAttr(iterator, name.auto_collation);
    int truth = batching == NULL ? -1 : PyObject_IsTrue(batching);
    Py_XDECREF(batching);
    *samples = truth ? -1 : 1;
    return truth < 0 ? -1 : 0;
}
