/* Hooks of an iterator without workers. */

#pragma once

#include "record.h"

/* `_next_index`: drawing the indices, and what comes before fetching. */
static PyObject *
drawing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    BatchTimings *timings = iterator == NULL ? NULL : timings_of(iterator);
    if (timings == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    int64_t t0 = now_ns();
    PyObject *index = PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    if (index == NULL) {
        goto done;
    }
    if (samples_of(iterator, index, &timings->samples) < 0) {
        Py_CLEAR(index);
        goto done;
    }
    if (timings->detailed) {
        PyObject *detail[] = {(PyObject *)timings, index, iterator};
        PyThreadState *thread = go_unseen();
        Py_SETREF(index, PyObject_VectorcallMethod(name.begin_detail, detail, 3, NULL));
        be_seen(thread);
    }
    timings->t_index = t0;
    timings->t_fetch = now_ns();
done:
    Py_DECREF(timings);
    return index;
}

/* A fetcher's `fetch`: marks its end. */
static PyObject *
fetching_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *fetcher = PyVectorcall_NARGS(nargsf) > 0 ? args[0] : NULL;
    PyObject *held = fetcher == NULL ? NULL : PyObject_GetAttr(fetcher, name.timings);
    if (held == NULL || !PyObject_TypeCheck(held, &BatchTimingsType)) {
        Py_XDECREF(held);
        PyErr_Clear();
        return PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    BatchTimings *timings = (BatchTimings *)held;
    if (entered.timings == timings) {
        entered.fetcher = fetcher;
    }
    PyObject *data = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    if (entered.fetcher == fetcher) {
        entered.fetcher = NULL;
    }
    if (data != NULL) {
        timings->t_collated = now_ns();
        if (timings->lane != NULL && PyObject_TypeCheck(timings->lane, &LaneStateType)) {
            lane_near((LaneState *)timings->lane);
        }
    }
    Py_DECREF(held);
    return data;
}
