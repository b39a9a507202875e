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
marks_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
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
marks_traverse(BatchTimings *self, visitproc visit, void *arg)
{
    Py_VISIT(self->lane);
    Py_VISIT(self->device);
    Py_VISIT(self->envelope);
    Py_VISIT(self->drawn);
    Py_VISIT(self->looks);
    return 0;
}

static int
marks_clear(BatchTimings *self)
{
    Py_CLEAR(self->lane);
    Py_CLEAR(self->device);
    Py_CLEAR(self->envelope);
    Py_CLEAR(self->drawn);
    Py_CLEAR(self->looks);
    return 0;
}

static void
marks_dealloc(BatchTimings *self)
{
    PyObject_GC_UnTrack(self);
    marks_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Flags take any value by its truth, as a Python attribute would. */
static PyObject *
marks_get_flag(BatchTimings *self, void *closure)
{
    return PyBool_FromLong(*((char *)self + (Py_ssize_t)closure));
}

static int
marks_set_flag(BatchTimings *self, PyObject *value, void *closure)
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

#define MARKS_TIME(field) {#field, T_LONGLONG, offsetof(BatchTimings, field), 0, NULL}
#define MARKS_OBJECT(field) {#field, T_OBJECT_EX, offsetof(BatchTimings, field), 0, NULL}
static PyMemberDef marks_members[] = {
    MARKS_TIME(t_fetch), MARKS_TIME(t_collate), MARKS_TIME(t_collated), MARKS_TIME(t_cpu_fetch),
    MARKS_TIME(t_cpu_collate), MARKS_TIME(t_index), MARKS_TIME(taken), MARKS_TIME(samples), MARKS_TIME(epoch),
    MARKS_TIME(tasks), MARKS_OBJECT(lane), MARKS_OBJECT(device), MARKS_OBJECT(envelope), MARKS_OBJECT(drawn),
    MARKS_OBJECT(looks),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef marks_getset[] = {
    {"detailed", (getter)marks_get_flag, (setter)marks_set_flag, NULL, (void *)offsetof(BatchTimings, detailed)},
    {"special", (getter)marks_get_flag, (setter)marks_set_flag, NULL, (void *)offsetof(BatchTimings, special)},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject MarksType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.BatchTimings",
    .tp_doc = "The clock readings of the batch being made.",
    .tp_basicsize = sizeof(BatchTimings),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = marks_new,
    .tp_dealloc = (destructor)marks_dealloc,
    .tp_traverse = (traverseproc)marks_traverse,
    .tp_clear = (inquiry)marks_clear,
    .tp_members = marks_members,
    .tp_getset = marks_getset,
};

/* The iterator whose `__next__` was entered last, its step, and the fetcher it has handed indices to. They spare the
   look-ups of the calls inside. Borrowed, and compared before use: whoever enters sets them and whoever leaves clears
   them, so that what they name is alive as long as they name it, in whichever order threads take turns. */
static struct {
    PyObject *iterator, *fetcher;
    BatchTimings *step;
} entered;

/* The iterator's step: a new reference, NULL without an error where it has none, NULL with one on failure. */
static BatchTimings *
step_of(PyObject *iterator)
{
    if (iterator == entered.iterator) {
        return (BatchTimings *)Py_NewRef((PyObject *)entered.step);
    }
    PyObject *step = PyObject_GetAttr(iterator, name.ls);
    if (step == NULL || PyObject_TypeCheck(step, &MarksType)) {
        return (BatchTimings *)step;
    }
    Py_DECREF(step);
    return NULL;
}

static LaneState *
lane_of(BatchTimings *step)
{
    if (step->lane == NULL || !PyObject_TypeCheck(step->lane, &LaneStateType)) {
        PyErr_SetString(PyExc_TypeError, "a step without a lane");
        return NULL;
    }
    return (LaneState *)Py_NewRef(step->lane);
}

/* How many samples the indices stand for: as torch without automatic batching, one; -1 where that is not plain. */
static int
samples_of(PyObject *iterator, PyObject *index, long long *samples)
{
    if (PyList_CheckExact(index)) {
        *samples = PyList_GET_SIZE(index);
        return 0;
    }
    PyObject *batching = PyObject_GetAttr(iterator, name.auto_collation);
    int truth = batching == NULL ? -1 : PyObject_IsTrue(batching);
    Py_XDECREF(batching);
    *samples = truth ? -1 : 1;
    return truth < 0 ? -1 : 0;
}
