/* `__next__`, without workers and with. */

#pragma once

#include "received.h"

typedef int (*recording)(Hook *, PyObject *, BatchTimings *, PyObject *, int64_t, int64_t);

static inline PyObject *
stepped(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames, recording record)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    BatchTimings *timings = iterator == NULL ? NULL : timings_of(iterator);
    if (timings == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    int64_t t0 = now_ns();
    PyObject *data = NULL;
    if (timings->device != NULL && timings->device != Py_None) {
        PyObject *device = Py_NewRef(timings->device);
        PyThreadState *thread = go_unseen();
        PyObject *entered = PyObject_CallMethodNoArgs(device, name.entered);
        be_seen(thread);
        Py_DECREF(device);
        if (entered == NULL) {
            goto done;
        }
        Py_DECREF(entered);
    }
    entered.iterator = iterator;
    entered.timings = timings;
    entered.fetcher = NULL;
    timings->begun.at = NULL;
    data = PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    entered.iterator = entered.fetcher = NULL;
    entered.timings = NULL;
    if (data == NULL) {
        base_raised(hook, timings, t0);
        goto done;
    }
    int64_t t1 = now_ns();
    PyThreadState *thread = go_unseen();
    if (record(hook, iterator, timings, data, t0, t1) < 0 && recording_failed(hook->more[ON_FAILURE], iterator, timings) < 0) {
        Py_CLEAR(data);
    }
    be_seen(thread);
done:
    Py_DECREF(timings);
    return data;
}

static PyObject *
stepping_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return stepped(callable, args, nargsf, kwnames, record_made);
}

static PyObject *
receiving_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return stepped(callable, args, nargsf, kwnames, record_received);
}
