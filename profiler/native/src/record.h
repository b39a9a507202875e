/* What each `__next__` does at its end, and the record of a batch made in this process. */

#pragma once

#include "errors.h"
#include "hook.h"
#include "step_marks.h"

enum { ON_END, ON_FAILURE }; /* `more` of the two hooks of `__next__` */

/* The base has raised: note the end, and raise the same again. */
static void
base_raised(Hook *hook, BatchTimings *timings, int64_t t0)
{
    PyThreadState *thread = go_unseen();
    PyObject *error = take_error();
    PyObject *time = PyLong_FromLongLong(t0);
    PyObject *done = NULL;
    if (time != NULL) {
        PyObject *args[] = {(PyObject *)timings, time, error};
        done = or_raise(PyObject_Vectorcall(hook->more[ON_END], args, 3, NULL));
        Py_DECREF(time);
    }
    be_seen(thread);
    raise_after(error, done);
}

/* Our part has failed: 0 where the loop may go on with its batch, -1 with the error set where that is none of ours: a
 * Ctrl-C, or what a signal's handler raised while our part was at work. */
static int
recording_failed(PyObject *on_failure, PyObject *iterator, BatchTimings *timings)
{
    PyObject *error = take_error();
    PyObject *args[] = {iterator, (PyObject *)timings, error};
    PyObject *ours = PyObject_Vectorcall(on_failure, args, 3, NULL);
    if (ours == Py_False) {
        Py_DECREF(ours);
        give_error(error);
        return -1;
    }
    Py_DECREF(error);
    Py_XDECREF(ours);
    return ours == NULL ? -1 : 0;
}

static void
put_head(char *at, BatchTimings *timings, int64_t seq, int64_t t0, int64_t wait, int64_t index, int64_t fetch, int64_t collate,
         int64_t samples)
{
    PUT_Q(at, SEQ, seq);
    PUT_Q(at, T, t0);
    PUT_Q(at, WAIT, wait);
    PUT_Q(at, INDEX, index);
    PUT_Q(at, FETCH, fetch);
    PUT_Q(at, COLLATE, collate);
    PUT_I(at, SAMPLES, samples);
    PUT_I(at, EPOCH, timings->epoch);
}

/* Publish record `n`, and choose whether the next batch is looked at. */
static int
record_done(LaneState *lane, BatchTimings *timings, int64_t n, int detailed)
{
    if (lane_publish(lane, n + 1) < 0) {
        return -1;
    }
    int64_t seq = lane->first + n;
    if ((seq & ((seq <= layout.until ? layout.every : layout.rarely) - 1)) == 0) {
        timings->special = 1;
        if (detailed) {
            timings->detailed = 1;
        }
    }
    return 0;
}

/* Call a method of the iteration with the lane, the record's number, and up to four more; takes references to those. */
static int
call_special(BatchTimings *timings, PyObject *method, LaneState *lane, int64_t n, PyObject *const *rest, size_t count)
{
    PyObject *args[8] = {(PyObject *)timings, (PyObject *)lane, PyLong_FromLongLong(n)};
    int complete = args[2] != NULL;
    for (size_t i = 0; i < count; i++) {
        args[3 + i] = rest[i];
        complete &= rest[i] != NULL;
    }
    PyObject *done = complete ? PyObject_VectorcallMethod(method, args, 3 + count, NULL) : NULL;
    for (size_t i = 2; i < 3 + count; i++) {
        Py_XDECREF(args[i]);
    }
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* The record of a batch made in this process. */
static int
record_made(Hook *Py_UNUSED(hook), PyObject *iterator, BatchTimings *timings, PyObject *data, int64_t t0, int64_t t1)
{
    int64_t n;
    int result = -1;
    LaneState *lane = lane_of(timings);
    if (lane == NULL) {
        return -1;
    }
    char *at = lane_slot(lane, &n);
    if (at == NULL) {
        goto done;
    }
    put_head(at, timings, lane->first + n, t0, t1 - t0, timings->t_fetch - timings->t_index, timings->t_collate - timings->t_fetch,
             timings->t_collated - timings->t_collate, timings->samples);
    if (timings->special) {
        PyObject *rest[] = {Py_NewRef(data), PyLong_FromLongLong(t1), PyLong_FromLongLong(t1 - t0),
                            PyObject_GetAttr(iterator, name.pin_memory)};
        if (call_special(timings, name.finish, lane, n, rest, 4) < 0) {
            goto done;
        }
    }
    if (tell_device(timings, lane, n, data) < 0) {
        goto done;
    }
    result = record_done(lane, timings, n, 1);
done:
    Py_DECREF(lane);
    return result;
}
