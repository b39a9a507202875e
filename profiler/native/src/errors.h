/* An error in hand: taken, and raised again. And Python of ours at work: unseen by the user's profilers and tracers. */

#pragma once

#include "layout.h"

/* Until `be_seen`, functions of ours are called, in which none of the user's runs: what he has set to be told of calls
 * and lines (a profiler, a debugger, a measure of coverage) is told of his own, as it is bare. */
static inline PyThreadState *
go_unseen(void)
{
    PyThreadState *thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030B0000
    PyThreadState_EnterTracing(thread);
#endif
    return thread;
}

static inline void
be_seen(PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyThreadState_LeaveTracing(thread);
#else
    (void)thread;
#endif
}

static PyObject *
take_error(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* Raise it again; takes the reference. */
static void
give_error(PyObject *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), error, PyException_GetTraceback(error));
#endif
}

/* What a function of ours has returned; where that is an error, it is raised. So no frame of ours is added to it. */
static PyObject *
or_raise(PyObject *result)
{
    if (result != NULL && PyExceptionInstance_Check(result)) {
        give_error(result);
        return NULL;
    }
    return result;
}

/* Raise `error` again, after we have done something on its way; takes both references. Where `done` is NULL, that was
 * interrupted: the interruption is what the loop sees, raised while handling the other. */
static void
raise_after(PyObject *error, PyObject *done)
{
    if (done != NULL) {
        Py_DECREF(done);
        give_error(error);
        return;
    }
    PyObject *newer = take_error();
    PyException_SetContext(newer, error);
    give_error(newer);
}
