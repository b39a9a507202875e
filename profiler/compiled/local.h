/* Hooks of an iterator without workers. */

#pragma once

#include "step.h"

enum { PINNED }; /* `more` of `_next_data` */

/* next(iterator), as the built-in does it: StopIteration is an error like any other. */
static PyObject *
next_of(PyObject *iterator)
{
    if (Py_TYPE(iterator)->tp_iternext == NULL) {
        PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(iterator)->tp_name);
        return NULL;
    }
    PyObject *item = Py_TYPE(iterator)->tp_iternext(iterator);
    if (item == NULL && !PyErr_Occurred()) {
        PyErr_SetNone(PyExc_StopIteration);
    }
    return item;
}

static PyObject *
drawing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    Marks *step = iterator == NULL ? NULL : step_of(iterator);
    if (step == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    PyObject *sampler = NULL, *index = NULL, *fetcher = NULL, *data = NULL, *pinning = NULL;
    int64_t t0 = now_ns();
    sampler = PyObject_GetAttr(iterator, name.sampler_iter);
    index = sampler == NULL ? NULL : next_of(sampler);
    if (index == NULL || samples_of(iterator, index, &step->samples) < 0) {
        goto done;
    }
    if (step->detailed) {
        PyObject *detail[] = {(PyObject *)step, index, iterator};
        PyObject *watched = PyObject_VectorcallMethod(name.begin_detail, detail, 3, NULL);
        if (watched == NULL) {
            goto done;
        }
        Py_SETREF(index, watched);
    }
    step->t_index = t0;
    step->t_fetch = now_ns();
    fetcher = PyObject_GetAttr(iterator, name.fetcher);
    if (fetcher == NULL) {
        goto done;
    }
    PyObject *fetching[] = {fetcher, index};
    if (entered.step == step) {
        entered.fetcher = fetcher;
    }
    data = PyObject_VectorcallMethod(name.fetch, fetching, 2, NULL);
    if (entered.fetcher == fetcher) {
        entered.fetcher = NULL;
    }
    if (data == NULL) {
        goto done;
    }
    if (step->lane != NULL && PyObject_TypeCheck(step->lane, &LaneStateType)) {
        lane_near((LaneState *)step->lane);
    }
    pinning = PyObject_GetAttr(iterator, name.pin_memory);
    int pin = pinning == NULL ? -1 : PyObject_IsTrue(pinning);
    if (pin < 0) {
        Py_CLEAR(data);
    }
    else if (pin) {
        PyObject *pinned[] = {iterator, data};
        Py_SETREF(data, PyObject_Vectorcall(hook->more[PINNED], pinned, 2, NULL));
        step->taken = now_ns();
    }
    else {
        step->t_collated = now_ns();
    }
done:
    Py_XDECREF(pinning);
    Py_XDECREF(fetcher);
    Py_XDECREF(index);
    Py_XDECREF(sampler);
    Py_DECREF(step);
    return data;
}
