/* CollateMark: a fetcher's `collate_fn`; asking for it is the moment between fetch and collate. */

#pragma once

#include "hook.h"
#include "marks.h"

static PyObject *
collate_get(PyObject *self, PyObject *fetcher, PyObject *Py_UNUSED(owner))
{
    if (fetcher == NULL || fetcher == Py_None) {
        return Py_NewRef(self);
    }
    PyObject *marks =
        fetcher == entered.fetcher ? Py_NewRef((PyObject *)entered.step) : PyObject_GetAttr(fetcher, name.marks);
    if (marks == NULL) {
        return NULL;
    }
    if (PyObject_TypeCheck(marks, &MarksType)) {
        BatchTimings *step = (BatchTimings *)marks;
        if (step->detailed) {
            step->t_cpu_collate = thread_cpu_ns();
        }
        step->t_collate = now_ns();
    }
    Py_DECREF(marks);
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
