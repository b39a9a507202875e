/* CollateMark: a fetcher's `collate_fn`; asking for it is the moment between fetch and collate. */

#pragma once

#include "hook.h"
#include "batch_timings.h"

static PyObject *
collate_get(PyObject *self, PyObject *fetcher, PyObject *Py_UNUSED(owner))
{
    if (fetcher == NULL || fetcher == Py_None) {
        return Py_NewRef(self);
    }
    PyObject *held =
        fetcher == entered.fetcher ? Py_NewRef((PyObject *)entered.timings) : PyObject_GetAttr(fetcher, name.timings);
    if (held == NULL) {
        return NULL;
    }
    if (PyObject_TypeCheck(held, &BatchTimingsType)) {
        BatchTimings *timings = (BatchTimings *)held;
        if (timings->detailed) {
            timings->t_cpu_collate = thread_cpu_ns();
        }
        timings->t_collate = now_ns();
    }
    Py_DECREF(held);
    return PyObject_GetAttr(fetcher, name.collate);
}

static int
collate_set(PyObject *Py_UNUSED(self), PyObject *fetcher, PyObject *value)
{
    return PyObject_SetAttr(fetcher, name.collate, value);
}

static PyTypeObject CollateMarkType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler.native._native.CollateMark",
    .tp_doc = "A fetcher's collate_fn: asking for it marks where collating begins.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_descr_get = collate_get,
    .tp_descr_set = collate_set,
};
