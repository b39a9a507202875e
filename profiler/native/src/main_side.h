/* Hooks of an iterator with workers, in main. */

#pragma once

#include "parcel.h"
#include "stepping.h"

enum { ENVELOPE, OTHERWISE, NOT_BEGUN }; /* `more` of `_process_data` */
enum { ARRIVAL, INTO };             /* `more` of `get` */

static PyObject *
indexing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    BatchTimings *timings = iterator == NULL ? NULL : timings_of(iterator);
    if (timings == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    PyObject *index = NULL, *task = NULL, *noted = NULL;
    long long samples;
    int64_t t0 = now_ns();
    index = PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    if (index == NULL) {
        goto done;
    }
    int64_t took = now_ns() - t0;
    task = PyObject_GetAttr(iterator, name.send_idx);
    noted = samples_of(iterator, index, &samples) < 0 ? NULL : Py_BuildValue("LL", (long long)took, samples);
    if (task == NULL || noted == NULL || PyObject_SetItem(timings->drawn, task, noted) < 0) {
        Py_CLEAR(index);
    }
    else if (timings->looks != NULL && timings->looks != Py_None) { /* the first tasks of an iteration are looked at */
        PyObject *looking[] = {timings->looks, index, task};
        PyThreadState *thread = go_unseen();
        PyObject *looked = PyObject_VectorcallMethod(name.looked_at, looking, 3, NULL);
        be_seen(thread);
        if (looked == NULL) {
            Py_CLEAR(index);
        }
        Py_XDECREF(looked);
    }
done:
    Py_XDECREF(noted);
    Py_XDECREF(task);
    Py_DECREF(timings);
    return index;
}

/* `_process_data(self, data, *rest)`: an envelope gives its batch; anything else goes to OTHERWISE. */
static PyObject *
processing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    enum { MOST = 8 };
    Hook *hook = (Hook *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (kwnames != NULL || count < 2 || count > MOST || (PyObject *)Py_TYPE(args[1]) != hook->more[ENVELOPE] ||
        !PyObject_TypeCheck(args[1], &ParcelType)) {
        return PyObject_Vectorcall(hook->more[OTHERWISE], args, nargsf, kwnames);
    }
    Parcel *parcel = (Parcel *)args[1];
    BatchTimings *timings = timings_of(args[0]);
    if (timings != NULL) {
        timings->taken = now_ns();
        Py_XSETREF(timings->envelope, Py_NewRef((PyObject *)parcel));
        int failed = 0;
        if (begin_record(timings, args[0], parcel) < 0) {
            Py_XSETREF(timings->envelope, Py_NewRef(Py_None));
            failed = recording_failed(hook->more[NOT_BEGUN], args[0], timings);
        }
        Py_DECREF(timings);
        if (failed < 0) {
            return NULL;
        }
    }
    else if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *passed[MOST];
    memcpy(passed, args, (size_t)count * sizeof *passed);
    PyObject *payload = parcel->payload == NULL ? Py_NewRef(Py_None) : parcel->payload;
    parcel->payload = Py_NewRef(Py_None); /* the envelope outlives the call; the batch is the loop's */
    passed[1] = payload;
    PyObject *result = PyObject_Vectorcall(hook->base, passed, (size_t)count, NULL);
    Py_DECREF(payload);
    return result;
}

/* `_recv_bytes`: the moment at which the bytes have arrived stands in `t_last`. */
static PyObject *
arriving_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *message = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    hook->t_last = now_ns();
    return message;
}

/* The envelope of a sealed batch; anything else as it is. */
static PyObject *
open_sealed(PyObject *data, long long unpack_ns, PyObject *envelope)
{
    PyObject *seal = PyTuple_CheckExact(data) && PyTuple_GET_SIZE(data) == 3 ? PyTuple_GET_ITEM(data, 0) : NULL;
    Py_ssize_t length = PyBytes_GET_SIZE(layout.seal);
    if (seal == NULL || !PyBytes_CheckExact(seal) || PyBytes_GET_SIZE(seal) != length ||
        memcmp(PyBytes_AS_STRING(seal), PyBytes_AS_STRING(layout.seal), (size_t)length) != 0) {
        return Py_NewRef(data);
    }
    PyObject *took = PyLong_FromLongLong(unpack_ns);
    PyObject *args[] = {PyTuple_GET_ITEM(data, 1), PyTuple_GET_ITEM(data, 2), took};
    PyObject *result = took == NULL ? NULL : PyObject_Vectorcall(envelope, args, 3, NULL);
    Py_XDECREF(took);
    return result;
}

/* `get`: the message, its batch in an envelope. */
static PyObject *
getting_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *message = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    if (message == NULL || !PyTuple_CheckExact(message) || PyTuple_GET_SIZE(message) != 2) {
        return message;
    }
    long long unpack_ns = now_ns() - ((Hook *)hook->more[ARRIVAL])->t_last;
    PyObject *content = open_sealed(PyTuple_GET_ITEM(message, 1), unpack_ns, hook->more[INTO]);
    PyObject *result = content == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(message, 0), content);
    Py_XDECREF(content);
    Py_DECREF(message);
    return result;
}
