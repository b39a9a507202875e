/* Hooks in a worker. */

#pragma once

#include "collate_mark.h"
#include "stamping.h"
#include "making.h"
#include "parcel.h"

enum { TIMINGS, BEGIN };            /* `more` of the task queue's `get` */
enum { /* TIMINGS, */ CAREFULLY = 1, WHO }; /* `more` of the result queue's `put` */
enum { EMPTY_BYTES };             /* `more` of `_send_bytes` */

static int
is_numbered(PyObject *message)
{
    return PyTuple_CheckExact(message) && PyTuple_GET_SIZE(message) == 2 &&
           PyLong_CheckExact(PyTuple_GET_ITEM(message, 0));
}

/* What a worker process runs. `base` gives (loop, its arguments, what to call when it has ended). */
static PyObject *
working_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *begun = or_raise(PyObject_Vectorcall(hook->base, args, nargsf, kwnames));
    if (begun == NULL) {
        return NULL;
    }
    if (!PyTuple_CheckExact(begun) || PyTuple_GET_SIZE(begun) != 3) {
        Py_DECREF(begun);
        PyErr_SetString(PyExc_TypeError, "a loop, its arguments and an end are needed");
        return NULL;
    }
    PyObject *result = PyObject_Call(PyTuple_GET_ITEM(begun, 0), PyTuple_GET_ITEM(begun, 1), NULL);
    PyObject *error = result == NULL ? take_error() : NULL;
    PyObject *done = PyObject_CallNoArgs(PyTuple_GET_ITEM(begun, 2));
    Py_DECREF(begun);
    if (error != NULL) {
        raise_after(error, done);
        return NULL;
    }
    if (done == NULL) {
        Py_CLEAR(result);
    }
    Py_XDECREF(done);
    return result;
}

/* A task arrives. One to be looked at in detail is begun by the Python form. */
static PyObject *
taking_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    BatchTimings *timings = (BatchTimings *)hook->more[TIMINGS];
    PyObject *message = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    if (message == NULL || !is_numbered(message)) {
        return message;
    }
    if (timings->detailed || (timings->tasks + 1) % layout.detail_every == 0) {
        PyObject *index = PyObject_CallOneArg(hook->more[BEGIN], PyTuple_GET_ITEM(message, 1));
        PyObject *result = index == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(message, 0), index);
        Py_XDECREF(index);
        Py_DECREF(message);
        return result;
    }
    timings->tasks++;
    timings->t_collate = 0;
    timings->t_fetch = now_ns();
    return message;
}

/* What goes on the queue in place of `(task, batch)`; NULL with an error set where it cannot be made. */
static PyObject *
sealed(BatchTimings *timings, PyObject *message, int32_t pid, int32_t worker)
{
    int64_t end = now_ns(), collating = timings->t_collate ? timings->t_collate : end;
    struct times times = {
        .task = PyLong_AsLongLong(PyTuple_GET_ITEM(message, 0)),
        .t_fetch = timings->t_fetch, .fetch = collating - timings->t_fetch, .collate = end - collating,
        .fetch_cpu = -1, .collate_cpu = -1, .bytes = -1, .own = -1, .tensors = -1, .pid = pid, .worker = worker,
        .fastest = (float)Py_NAN, .median = (float)Py_NAN, .slowest = (float)Py_NAN,
    };
    if (times.task == -1 && PyErr_Occurred()) {
        return NULL;
    }
    timings->detailed = times.fetch + times.collate > layout.always_ns || timings->tasks < layout.at_first;
    PyObject *result = NULL, *content = NULL, *meta = PyBytes_FromStringAndSize(NULL, META_BYTES);
    if (meta != NULL) {
        char *at = PyBytes_AS_STRING(meta);
        struct sent sent = {.t_sent = -1, .length = -1};
        sent.pack = now_ns(); /* until it is sent: the time of the put */
        times.own = sent.pack - end;
        memcpy(at, PyBytes_AS_STRING(layout.mark), MARK_BYTES);
        memcpy(at + MARK_BYTES, &times, sizeof times);
        memcpy(at + MARK_BYTES + sizeof times, &sent, sizeof sent);
        content = PyTuple_Pack(3, layout.seal, PyTuple_GET_ITEM(message, 1), meta);
    }
    if (content != NULL) {
        result = PyTuple_Pack(2, PyTuple_GET_ITEM(message, 0), content);
    }
    Py_XDECREF(content);
    Py_XDECREF(meta);
    return result;
}

/* A batch leaves. One that was looked at in detail, an error and a stream's end are handed to the Python form. */
static PyObject *
putting_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    BatchTimings *timings = (BatchTimings *)hook->more[TIMINGS];
    PyObject *who = hook->more[WHO]; /* (pid, worker id, types of what is no batch…) */
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL || timings->detailed || !is_numbered(args[0])) {
        return PyObject_Vectorcall(hook->more[CAREFULLY], args, nargsf, kwnames);
    }
    for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(who); i++) {
        if ((PyObject *)Py_TYPE(PyTuple_GET_ITEM(args[0], 1)) == PyTuple_GET_ITEM(who, i)) {
            return PyObject_Vectorcall(hook->more[CAREFULLY], args, nargsf, kwnames);
        }
    }
    int32_t pid = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(who, 0));
    int32_t worker = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(who, 1));
    PyObject *message = sealed(timings, args[0], pid, worker);
    if (message == NULL) { /* a failure of ours must never cost a batch */
        PyErr_Clear();
        return PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    }
    PyObject *result = PyObject_CallOneArg(hook->base, message);
    Py_DECREF(message);
    return result;
}

/* Write into the pickled bytes when they are sent and what that took; -1 where they cannot be written. */
static int
fill_in(PyObject *message, int64_t t_free, int64_t empty_bytes)
{
    Py_buffer bytes;
    struct sent sent;
    if (PyObject_GetBuffer(message, &bytes, PyBUF_WRITABLE) < 0) {
        PyErr_Clear();
        return -1;
    }
    char *start = bytes.buf, *mark = PyBytes_AS_STRING(layout.mark);
    /* From the end on: the batch itself is pickled before. */
    Py_ssize_t at = bytes.len - META_BYTES, least = MAX(0, bytes.len - TAIL_BYTES);
    while (at >= least && memcmp(start + at, mark, MARK_BYTES) != 0) {
        at--;
    }
    if (at >= least) {
        char *place = start + at + MARK_BYTES + sizeof(struct times);
        memcpy(&sent, place, sizeof sent);
        sent.t_sent = now_ns();
        sent.pack = sent.t_sent - MAX(sent.pack, t_free);
        sent.length = bytes.len - empty_bytes;
        memcpy(place, &sent, sizeof sent);
    }
    PyBuffer_Release(&bytes);
    return 0;
}

/* `_send_bytes`, used by the queue's one feeder thread; since `t_last` it has had nothing else to do. */
static PyObject *
sending_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    if (PyVectorcall_NARGS(nargsf) == 1) {
        int64_t empty_bytes = PyLong_AsLongLong(hook->more[EMPTY_BYTES]);
        if (fill_in(args[0], hook->t_last, empty_bytes) < 0) {
            hook->t_last = 0;
        }
    }
    PyObject *result = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    hook->t_last = now_ns();
    return result;
}
