/* What runs once a batch, compiled: clock readings, the record, and the envelope's way through the queue.
 *
 * An option: form.py takes it where it could be built, and python_form.py otherwise. Every function here does what
 * its Python form does, in the same order, and hands all that is rare (detail, devices, full segments, exceptions) to
 * that Python. A C function has no frame, so nothing of ours stands between the user's line and the user's code.
 *
 * Where the fields of records lie is told by Python (`records`), of what envelopes are made is compared with what is
 * written here (`envelopes`); where the two do not agree, the Python form is used.
 */

#include "layout.h"
#include "errors.h"
#include "lane_state.h"
#include "batch_timings.h"
#include "hook.h"
#include "step_marks.h"
#include "noticing.h"
#include "record.h"
#include "received.h"
#include "stepping.h"
#include "local.h"
#include "making.h"
#include "collate_mark.h"
#include "stamping.h"
#include "parcel.h"
#include "main_side.h"
#include "worker_side.h"

/* Makers of hooks: NAME(base, …) with as many objects as that kind needs. */
#define MAKER(kind, told, more) \
    static PyObject *kind(PyObject *Py_UNUSED(module), PyObject *args) \
    { \
        PyObject *given[4] = {NULL}; \
        if (!PyArg_UnpackTuple(args, #kind, 1 + (more), 1 + (more), &given[0], &given[1], &given[2], &given[3])) { \
            return NULL; \
        } \
        return hook_new(kind##_call, told, given[0], given[1], given[2], given[3]); \
    }

MAKER(stepping, RECORDS_TOLD, 2)
MAKER(receiving, RECORDS_TOLD && ENVELOPES_TOLD, 2)
MAKER(making, 1, 2)
MAKER(resetting, 1, 1)
MAKER(working, 1, 0)
MAKER(following, 1, 1)
MAKER(drawing, 1, 0)
MAKER(fetching, 1, 0)
MAKER(indexing, 1, 0)
MAKER(processing, RECORDS_TOLD && ENVELOPES_TOLD, 3)
MAKER(arriving, 1, 0)

static PyObject *
opened(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data, *envelope;
    long long unpack_ns;
    if (!PyArg_ParseTuple(args, "OLO", &data, &unpack_ns, &envelope)) {
        return NULL;
    }
    if (!ENVELOPES_TOLD) {
        PyErr_SetString(PyExc_RuntimeError, "the layout has not been told");
        return NULL;
    }
    return open_sealed(data, unpack_ns, envelope);
}

static PyObject *
getting(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *get, *arrival, *envelope;
    if (!PyArg_ParseTuple(args, "OO!O", &get, &HookType, &arrival, &envelope)) {
        return NULL;
    }
    return hook_new(getting_call, ENVELOPES_TOLD, get, arrival, envelope, NULL);
}

static PyObject *
taking(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *get, *timings, *begin;
    if (!PyArg_ParseTuple(args, "OO!O", &get, &BatchTimingsType, &timings, &begin)) {
        return NULL;
    }
    return hook_new(taking_call, ENVELOPES_TOLD, get, timings, begin, NULL);
}

static PyObject *
putting(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *put, *timings, *carefully, *who;
    if (!PyArg_ParseTuple(args, "OO!OO!", &put, &BatchTimingsType, &timings, &carefully, &PyTuple_Type, &who)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(who) < 2 || !PyLong_Check(PyTuple_GET_ITEM(who, 0)) ||
        !PyLong_Check(PyTuple_GET_ITEM(who, 1))) {
        PyErr_SetString(PyExc_TypeError, "pid, worker id and types are needed");
        return NULL;
    }
    return hook_new(putting_call, ENVELOPES_TOLD, put, timings, carefully, who);
}

static PyObject *
sending(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *send, *empty_bytes;
    if (!PyArg_ParseTuple(args, "OO!", &send, &PyLong_Type, &empty_bytes)) {
        return NULL;
    }
    return hook_new(sending_call, ENVELOPES_TOLD, send, empty_bytes, NULL, NULL);
}

/* With its signature, as `inspect` reads it. */
#define HOOK(kind, signature) {#kind, kind, METH_VARARGS, #kind "(" signature ", /)\n--\n\n"}
static PyMethodDef functions[] = {
    {"records", records, METH_VARARGS, records_doc},
    {"envelopes", envelopes, METH_VARARGS, envelopes_doc},
    HOOK(stepping, "base, on_end, on_failure"),
    HOOK(receiving, "base, on_end, on_failure"),
    HOOK(making, "base, begin, done"),
    HOOK(resetting, "base, before"),
    HOOK(drawing, "base"),
    HOOK(fetching, "base"),
    HOOK(indexing, "base"),
    HOOK(processing, "base, envelope, otherwise, on_failure"),
    HOOK(arriving, "receive"),
    HOOK(opened, "data, unpack_ns, envelope"),
    HOOK(getting, "get, arrival, envelope"),
    HOOK(following, "base, then"),
    HOOK(working, "begin"),
    HOOK(taking, "get, timings, begin"),
    HOOK(putting, "put, timings, carefully, who"),
    HOOK(sending, "send, empty_bytes"),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "loaderscope.profiler.native._native",
    .m_doc = "What runs once a batch, compiled.",
    .m_size = -1,
    .m_methods = functions,
};

static int
intern_names(void)
{
    const struct { PyObject **place; const char *text; } names[] = {
        {&name.ls, "_ls"}, {&name.entered, "entered"}, {&name.roll, "roll"}, {&name.finish, "finish"},
        {&name.finish_opened, "finish_opened"}, {&name.begin_detail, "begin_detail"}, {&name.looked_at, "drawn"},
        {&name.pin_memory, "_pin_memory"}, {&name.auto_collation, "_auto_collation"},
        {&name.timings, "_loaderscope_timings"}, {&name.collate, "_loaderscope_collate"}, {&name.send_idx, "_send_idx"},
        {&name.rcvd_idx, "_rcvd_idx"}, {&name.in_order, "_in_order"}, {&name.outstanding, "_tasks_outstanding"},
        {&name.result_queue, "_worker_result_queue"}, {&name.data_queue, "_data_queue"}, {&name.sem, "_sem"},
        {&name.semlock, "_semlock"}, {&name.get_value, "_get_value"}, {&name.maxsize, "_maxsize"},
        {&name.queue, "queue"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((*names[i].place = PyUnicode_InternFromString(names[i].text)) == NULL) {
            return -1;
        }
    }
    name.zero = PyLong_FromLong(0);
    return name.zero == NULL ? -1 : 0;
}

PyMODINIT_FUNC
PyInit__native(void)
{
    static const struct { const char *name; PyTypeObject *type; } types[] = {
        {"LaneState", &LaneStateType}, {"BatchTimings", &BatchTimingsType}, {"Parcel", &ParcelType}, {"Hook", &HookType},
        {"CollateMark", &CollateMarkType}, {"Stamping", &StampingType}, {"StepMarks", &StepMarksType},
        {"Noticing", &NoticingType},
    };
    PyObject *self = PyModule_Create(&module);
    if (self == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (PyType_Ready(types[i].type) < 0 ||
            PyModule_AddObjectRef(self, types[i].name, (PyObject *)types[i].type) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    if (intern_names() < 0 || marks_intern() < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}
