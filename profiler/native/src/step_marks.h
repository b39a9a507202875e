/* StepMarks: events of the device around each step, and the log of those that are not read yet. */

#pragma once

#include "batch_timings.h"
#include "errors.h"

typedef struct {
    PyObject_HEAD
    PyObject *make, *current, *capturing; /* of the device: a new event, its number, whether a graph is being captured */
    PyObject *pool, *log;                 /* lists: events to be used again, steps to be read */
    PyObject *before;                     /* the event at which `next()` was entered last, or None */
    PyObject *step[5];                    /* of the step under way, see below; all NULL: none */
    long long index, wait_ns, t_entered, batches, until, until_ns;
    char marking, looking;
} StepMarks;

enum { STEP_BEFORE, STEP_HANDED, STEP_WINDOW, STEP_AT, STEP_LOOKED, STEP_PARTS };

static struct { PyObject *record, *due, *look, *failed, *window; } marks_name;

static int
marks_intern(void)
{
    const struct { PyObject **place; const char *text; } names[] = {
        {&marks_name.record, "record"}, {&marks_name.due, "due"}, {&marks_name.look, "look"},
        {&marks_name.failed, "failed"}, {&marks_name.window, "window"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((*names[i].place = PyUnicode_InternFromString(names[i].text)) == NULL) {
            return -1;
        }
    }
    return 0;
}

static PyObject *
marks_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *make, *current, *capturing;
    long long index = 0;
    if (!PyArg_ParseTuple(args, "OOO", &make, &current, &capturing)) {
        return NULL;
    }
    PyObject *number = PyObject_CallNoArgs(current);
    index = number == NULL ? -1 : PyLong_AsLongLong(number);
    Py_XDECREF(number);
    StepMarks *self = PyErr_Occurred() ? NULL : (StepMarks *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->make = Py_NewRef(make);
    self->current = Py_NewRef(current);
    self->capturing = Py_NewRef(capturing);
    self->before = Py_NewRef(Py_None);
    self->pool = PyList_New(0);
    self->log = PyList_New(0);
    self->index = index;
    self->marking = 1;
    if (self->pool == NULL || self->log == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
marks_traverse(StepMarks *self, visitproc visit, void *arg)
{
    Py_VISIT(self->make);
    Py_VISIT(self->current);
    Py_VISIT(self->capturing);
    Py_VISIT(self->pool);
    Py_VISIT(self->log);
    Py_VISIT(self->before);
    for (int i = 0; i < STEP_PARTS; i++) {
        Py_VISIT(self->step[i]);
    }
    return 0;
}

static int
marks_clear(StepMarks *self)
{
    Py_CLEAR(self->make);
    Py_CLEAR(self->current);
    Py_CLEAR(self->capturing);
    Py_CLEAR(self->pool);
    Py_CLEAR(self->log);
    Py_CLEAR(self->before);
    for (int i = 0; i < STEP_PARTS; i++) {
        Py_CLEAR(self->step[i]);
    }
    return 0;
}

static void
marks_dealloc(StepMarks *self)
{
    PyObject_GC_UnTrack(self);
    marks_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* An event on the current stream, now; None where there can be none. */
static PyObject *
marks_mark(StepMarks *self, PyObject *Py_UNUSED(unused))
{
    if (!self->marking) {
        Py_RETURN_NONE;
    }
    if (self->make == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the clock has been cleared");
        return NULL;
    }
    PyObject *number = PyObject_CallNoArgs(self->current);
    long long index = number == NULL ? -1 : PyLong_AsLongLong(number);
    Py_XDECREF(number);
    if (index == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (index != self->index) { /* an event belongs to the device it was first recorded on */
        if (PyList_SetSlice(self->pool, 0, PyList_GET_SIZE(self->pool), NULL) < 0) {
            return NULL;
        }
        self->index = index;
    }
    PyObject *answer = PyObject_CallNoArgs(self->capturing);
    int capturing = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (capturing) { /* an event recorded now would become part of the user's graph */
        return capturing < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *event;
    Py_ssize_t free_ones = PyList_GET_SIZE(self->pool);
    if (free_ones > 0) {
        event = Py_NewRef(PyList_GET_ITEM(self->pool, free_ones - 1));
        if (PyList_SetSlice(self->pool, free_ones - 1, free_ones, NULL) < 0) {
            Py_CLEAR(event);
        }
    }
    else {
        event = PyObject_CallNoArgs(self->make);
    }
    PyObject *recorded = event == NULL ? NULL : PyObject_CallMethodNoArgs(event, marks_name.record);
    if (recorded == NULL) {
        Py_CLEAR(event);
    }
    Py_XDECREF(recorded);
    return event;
}

/* The step under way is over: into the log with it, as (before, handed, left, window, at, wait, looked). */
static int
marks_log(StepMarks *self, PyObject *left)
{
    if (self->step[STEP_HANDED] == NULL) {
        return 0;
    }
    PyObject *wait = PyLong_FromLongLong(self->wait_ns), *entry = wait == NULL ? NULL : PyTuple_New(7);
    if (entry == NULL) {
        Py_XDECREF(wait);
        return -1;
    }
    PyTuple_SET_ITEM(entry, 0, self->step[STEP_BEFORE]);
    PyTuple_SET_ITEM(entry, 1, self->step[STEP_HANDED]);
    PyTuple_SET_ITEM(entry, 2, Py_NewRef(left));
    PyTuple_SET_ITEM(entry, 3, self->step[STEP_WINDOW]);
    PyTuple_SET_ITEM(entry, 4, self->step[STEP_AT]);
    PyTuple_SET_ITEM(entry, 5, wait);
    PyTuple_SET_ITEM(entry, 6, self->step[STEP_LOOKED]);
    memset(self->step, 0, sizeof self->step);
    int failed = PyList_Append(self->log, entry);
    Py_DECREF(entry);
    return failed;
}

/* What failed is told; what that raises is the user's. */
static PyObject *
marks_failed(StepMarks *self)
{
    PyObject *error = take_error();
    PyObject *done = PyObject_CallMethodOneArg((PyObject *)self, marks_name.failed, error);
    Py_DECREF(error);
    return done;
}

static PyObject *
marks_entered(StepMarks *self, PyObject *Py_UNUSED(unused))
{
    PyObject *event = marks_mark(self, NULL);
    if (event == NULL || marks_log(self, event) < 0) {
        Py_XDECREF(event);
        return marks_failed(self);
    }
    Py_XSETREF(self->before, event);
    self->t_entered = now_ns();
    if (self->batches >= self->until || self->t_entered >= self->until_ns) {
        PyObject *done = PyObject_CallMethodNoArgs((PyObject *)self, marks_name.due);
        if (done == NULL) {
            return marks_failed(self);
        }
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}

static int
marks_hand_over(StepMarks *self, PyObject *lane, int64_t n, PyObject *data)
{
    self->batches++;
    self->wait_ns = now_ns() - self->t_entered;
    PyObject *step[STEP_PARTS] = {Py_XNewRef(self->before), marks_mark(self, NULL), NULL, NULL, Py_NewRef(Py_None)};
    if (step[STEP_HANDED] != NULL && (step[STEP_WINDOW] = PyObject_GetAttr(lane, marks_name.window)) != NULL) {
        step[STEP_AT] = PyLong_FromLongLong(layout.header + n * layout.record);
    }
    if (step[STEP_AT] != NULL && self->looking) {
        PyObject *args[] = {(PyObject *)self, step[STEP_WINDOW], step[STEP_AT], data};
        Py_SETREF(step[STEP_LOOKED], PyObject_VectorcallMethod(marks_name.look, args, 4, NULL));
    }
    if (step[STEP_AT] == NULL || step[STEP_LOOKED] == NULL) {
        for (int i = 0; i < STEP_PARTS; i++) {
            Py_XDECREF(step[i]);
        }
        return -1;
    }
    Py_XSETREF(self->before, Py_NewRef(Py_None));
    for (int i = 0; i < STEP_PARTS; i++) {
        Py_XSETREF(self->step[i], step[i]);
    }
    return 0;
}

static PyObject *
marks_handed_over(StepMarks *self, PyObject *args)
{
    PyObject *lane, *data;
    long long n;
    if (!PyArg_ParseTuple(args, "OLO", &lane, &n, &data)) {
        return NULL;
    }
    return marks_hand_over(self, lane, n, data) < 0 ? marks_failed(self) : Py_NewRef(Py_None);
}

#define MARKS_NUMBER(field) {#field, T_LONGLONG, offsetof(StepMarks, field), 0, NULL}
#define MARKS_FLAG(field) {#field, T_BOOL, offsetof(StepMarks, field), 0, NULL}
#define MARKS_OBJECT(field, flags) {#field, T_OBJECT_EX, offsetof(StepMarks, field), flags, NULL}
static PyMemberDef marks_members[] = {
    MARKS_NUMBER(t_entered), MARKS_NUMBER(batches), MARKS_NUMBER(until), MARKS_NUMBER(until_ns),
    MARKS_FLAG(marking), MARKS_FLAG(looking), MARKS_OBJECT(pool, READONLY), MARKS_OBJECT(log, READONLY),
    MARKS_OBJECT(make, 0), MARKS_OBJECT(capturing, 0),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef marks_methods[] = {
    {"mark", (PyCFunction)marks_mark, METH_NOARGS, "An event on the current stream, now; None where there can be none."},
    {"entered", (PyCFunction)marks_entered, METH_NOARGS, "next() has been entered: all work of this step was issued."},
    {"handed_over", (PyCFunction)marks_handed_over, METH_VARARGS,
     "The batch has been handed over; its record is number `n` of the lane's window."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject StepMarksType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.StepMarks",
    .tp_doc = "Events of the device around each step.",
    .tp_basicsize = sizeof(StepMarks),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = marks_new,
    .tp_dealloc = (destructor)marks_dealloc,
    .tp_traverse = (traverseproc)marks_traverse,
    .tp_clear = (inquiry)marks_clear,
    .tp_members = marks_members,
    .tp_methods = marks_methods,
};

/* The batch whose record is number `n` is handed over: to the device's clock, if the iteration has one. */
static int
tell_device(BatchTimings *timings, LaneState *lane, int64_t n, PyObject *data)
{
    StepMarks *device = (StepMarks *)timings->device;
    if (device == NULL || !PyObject_TypeCheck(device, &StepMarksType)) {
        return 0;
    }
    Py_INCREF(device);
    int result = marks_hand_over(device, (PyObject *)lane, n, data);
    if (result < 0) {
        PyObject *done = marks_failed(device);
        result = done == NULL ? -1 : 0;
        Py_XDECREF(done);
    }
    Py_DECREF(device);
    return result;
}
