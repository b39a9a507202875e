/* Making an iterator, and using it again: between the loader and torch's own code there is no frame of ours, whether it
 * draws the first indices, warns or fails. */

#pragma once

#include "record.h"

enum { BEGUN, DONE }; /* `more` of `_get_iterator` */
enum { BEFORE };      /* `more` of `_reset` */
enum { THEN };        /* `more` of a call whose result is looked at */

/* `_get_iterator(loader)`. BEGUN gives (maker, iteration), or anything else for a loader that is not watched; DONE is told
 * of what the maker made (None where it raised) and gives the iterator. */
static PyObject *
making_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL) {
        return PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    PyThreadState *thread = go_unseen();
    PyObject *begun = or_raise(PyObject_CallOneArg(hook->more[BEGUN], args[0]));
    be_seen(thread);
    if (begun == NULL) {
        return NULL;
    }
    if (!PyTuple_CheckExact(begun) || PyTuple_GET_SIZE(begun) != 2) {
        Py_DECREF(begun);
        return PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    }
    PyObject *made = PyObject_CallOneArg(PyTuple_GET_ITEM(begun, 0), args[0]);
    PyObject *error = made == NULL ? take_error() : NULL;
    PyObject *told[] = {made == NULL ? Py_None : made, PyTuple_GET_ITEM(begun, 1)};
    thread = go_unseen();
    PyObject *result = or_raise(PyObject_Vectorcall(hook->more[DONE], told, 2, NULL));
    be_seen(thread);
    Py_DECREF(begun);
    Py_XDECREF(made);
    if (error != NULL) {
        raise_after(error, result);
        return NULL;
    }
    return result;
}

/* `_reset(iterator, loader, first_iter=False)` */
static PyObject *
resetting_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyThreadState *thread = go_unseen();
    PyObject *done = or_raise(PyObject_Vectorcall(hook->more[BEFORE], args, nargsf, kwnames));
    be_seen(thread);
    if (done == NULL) {
        return NULL;
    }
    Py_DECREF(done);
    return PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
}

/* Any call: THEN is given its result, and gives what is returned. */
static PyObject *
following_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *made = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    if (made == NULL) {
        return NULL;
    }
    PyThreadState *thread = go_unseen();
    PyObject *result = or_raise(PyObject_CallOneArg(hook->more[THEN], made));
    be_seen(thread);
    Py_DECREF(made);
    return result;
}
