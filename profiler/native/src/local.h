/* Hooks of an iterator without workers. */

#pragma once

#include "step.h"

/* `_next_index`: drawing the indices, and what comes before fetching. */
static PyObject *
drawing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    BatchTimings *step = iterator == NULL ? NULL : step_of(iterator);
    if (step == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    int64_t t0 = now_ns();
    PyObject *index = PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    if (index == NULL) {
        goto done;
    }
    if (samples_of(iterator, index, &step->samples) < 0) {
        Py_CLEAR(index);
        goto done;
    }
    if (step->detailed) {
        PyObject *detail[] = {(PyObject *)step, index, iterator};
        Py_SETREF(index, PyObject_VectorcallMethod(name.begin_detail, detail, 3, NULL));
    }
    step->t_index = t0;
    step->t_fetch = now_ns();
done:
    Py_DECREF(step);
    return index;
}

/* A fetcher's `fetch`: marks its end. */
static PyObject *
fetching_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *fetcher = PyVectorcall_NARGS(nargsf) > 0 ? args[0] : NULL;
    PyObject *marks = fetcher == NULL ? NULL : PyObject_GetAttr(fetcher, name.marks);
    if (marks == NULL || !PyObject_TypeCheck(marks, &MarksType)) {
        Py_XDECREF(marks);
        PyErr_Clear();
        return PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    BatchTimings *step = (BatchTimings *)marks;
    if (entered.step == step) {
        entered.fetcher = fetcher;
    }
    PyObject *data = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    if (entered.fetcher == fetcher) {
        entered.fetcher = NULL;
    }
    if (data != NULL) {
        step->t_collated = now_ns();
        if (step->lane != NULL && PyObject_TypeCheck(step->lane, &LaneStateType)) {
            lane_near((LaneState *)step->lane);
        }
    }
    Py_DECREF(marks);
    return data;
}
