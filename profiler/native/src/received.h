/* The record of a batch that came from a worker. */

#pragma once

#include "record.h"

typedef struct {
    PyObject_HEAD
    PyObject *payload, *meta;
    long long pack_ns, t_sent_ns, pickled_bytes, unpack_ns, pin_ns;
} Parcel;

static PyTypeObject ParcelType;

/* What was noted when this task's indices were drawn: -1 and -1 where nothing was. */
static int
take_drawn(BatchTimings *timings, int64_t task, int64_t *index_ns, int64_t *samples)
{
    *index_ns = *samples = -1;
    if (timings->drawn == NULL || !PyDict_CheckExact(timings->drawn)) {
        PyErr_SetString(PyExc_TypeError, "an iteration without a table of tasks");
        return -1;
    }
    PyObject *key = PyLong_FromLongLong(task);
    if (key == NULL) {
        return -1;
    }
    PyObject *noted = PyDict_GetItemWithError(timings->drawn, key);
    int result = 0;
    if (noted != NULL) {
        if (PyTuple_CheckExact(noted) && PyTuple_GET_SIZE(noted) == 2) {
            *index_ns = PyLong_AsLongLong(PyTuple_GET_ITEM(noted, 0));
            *samples = PyLong_AsLongLong(PyTuple_GET_ITEM(noted, 1));
        }
        result = PyDict_DelItem(timings->drawn, key);
    }
    Py_DECREF(key);
    return result < 0 || PyErr_Occurred() ? -1 : 0;
}

static int64_t
attribute_as_number(PyObject *object, PyObject *attribute)
{
    PyObject *value = PyObject_GetAttr(object, attribute);
    int64_t number = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return number;
}

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* How many messages a queue holds, of multiprocessing or of queue; -1 where that is not known. As `qsize` says it, but
 * without running Python code: there, a signal's handler could raise, and the error would be taken for one of ours. */
static int64_t
queue_length(PyObject *iterator, PyObject *attribute)
{
    int64_t length = -1;
    PyObject *queue = PyObject_GetAttr(iterator, attribute), *held = NULL, *lock = NULL, *free_places = NULL;
    PyObject *semaphore = queue == NULL ? NULL : PyObject_GetAttr(queue, name.sem);
    if (semaphore != NULL) {
        lock = PyObject_GetAttr(semaphore, name.semlock);
        free_places = lock == NULL ? NULL : PyObject_CallMethodNoArgs(lock, name.get_value);
        int64_t places = free_places == NULL ? -1 : attribute_as_number(queue, name.maxsize);
        length = places < 0 ? -1 : places - PyLong_AsLongLong(free_places);
    }
    else if (queue != NULL) {
        PyErr_Clear();
        held = PyObject_GetAttr(queue, name.queue);
        length = held == NULL ? -1 : PyObject_Size(held);
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        length = -1;
    }
    Py_XDECREF(free_places);
    Py_XDECREF(lock);
    Py_XDECREF(semaphore);
    Py_XDECREF(held);
    Py_XDECREF(queue);
    return length;
}

/* Batches that are finished and wait in the queues; -1 where that is not known. */
static int64_t
waiting_in_queues(PyObject *iterator)
{
    int64_t waiting = queue_length(iterator, name.result_queue), pinned = 0;
    PyObject *pins = PyObject_GetAttr(iterator, name.pin_memory);
    if (pins == Py_True) {
        pinned = queue_length(iterator, name.data_queue);
    }
    else if (pins == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(pins);
    return waiting < 0 || pinned < 0 ? -1 : waiting + pinned;
}

/* How many batches are finished and were set aside because they came out of order. -1 with an error set on failure. */
static int64_t
set_aside(PyObject *iterator, int64_t outstanding)
{
    PyObject *order = PyObject_GetAttr(iterator, name.in_order); /* torch has it since 2.6 */
    if (order == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
    }
    int in_order = order == NULL ? 1 : PyObject_IsTrue(order);
    Py_XDECREF(order);
    if (in_order <= 0) {
        return in_order;
    }
    int64_t sent = attribute_as_number(iterator, name.send_idx);
    int64_t received = sent == -1 && PyErr_Occurred() ? -1 : attribute_as_number(iterator, name.rcvd_idx);
    return PyErr_Occurred() ? -1 : MAX(0, sent - received - outstanding);
}

/* The half of a record that came in the envelope. */
static void
put_opened(char *at, BatchTimings *timings, Parcel *parcel, const struct times *times)
{
    int sent = parcel->t_sent_ns > 0;
    int64_t queued = timings->taken - parcel->t_sent_ns - parcel->unpack_ns - MAX(0, parcel->pin_ns);
    PUT_Q(at, T_FETCH, times->t_fetch);
    PUT_Q(at, PACK, sent ? parcel->pack_ns : -1);
    PUT_Q(at, QUEUED, sent ? MAX(0, queued) : -1);
    PUT_Q(at, UNPACK, parcel->unpack_ns);
    PUT_Q(at, PIN, parcel->pin_ns);
    PUT_Q(at, PICKLED, parcel->pickled_bytes);
    PUT_I(at, TASK, times->task);
    PUT_I(at, PID, times->pid);
    PUT_H(at, WORKER, times->worker);
    PUT_Q(at, FETCH_CPU, times->fetch_cpu);
    PUT_Q(at, COLLATE_CPU, times->collate_cpu);
    PUT_Q(at, BYTES, times->bytes);
    PUT_I(at, TENSORS, times->tensors);
    /* OWN stays: where the lane has just moved on, its cost stands there. */
    PUT_F(at, SAMPLE_MIN, times->fastest);
    PUT_F(at, SAMPLE_MEDIAN, times->median);
    PUT_F(at, SAMPLE_MAX, times->slowest);
}

/* Begin the record of a batch that came from a worker, as soon as it is out of its envelope: 0 or -1 with an error.
 *
 * The sooner the better: `_process_data` goes on to hand a worker its next task through a thread of this process, and
 * that thread wakes a few microseconds later. If the loop is by then waiting for its next batch, the thread finds the
 * GIL free; every microsecond of ours in between makes it more often wait for it, which costs tens. */
static int
begin_record(BatchTimings *timings, PyObject *iterator, Parcel *parcel)
{
    int64_t n;
    memcpy(&timings->begun.times, PyBytes_AS_STRING(parcel->meta) + MARK_BYTES, sizeof timings->begun.times);
    timings->begun.waiting = waiting_in_queues(iterator);
    if (take_drawn(timings, timings->begun.times.task, &timings->begun.index_ns, &timings->begun.samples) < 0) {
        return -1;
    }
    LaneState *lane = lane_of(timings);
    char *at = lane == NULL ? NULL : lane_slot(lane, &n);
    Py_XDECREF(lane); /* the timings' own */
    if (at == NULL) {
        return -1;
    }
    put_opened(at, timings, parcel, &timings->begun.times);
    timings->begun.at = at;
    return 0;
}

/* The record of a batch that came from a worker. */
static int
record_received(Hook *Py_UNUSED(hook), PyObject *iterator, BatchTimings *timings, PyObject *data, int64_t t0, int64_t t1)
{
    int64_t n, index_ns = -1, samples = -1, fetch = -1, collate = -1;
    int result = -1;
    LaneState *lane = lane_of(timings);
    PyObject *parcel = timings->envelope;
    timings->envelope = Py_NewRef(Py_None);
    if (lane == NULL) {
        goto done;
    }
    int enveloped = parcel != NULL && PyObject_TypeCheck(parcel, &ParcelType);
    if (enveloped && timings->begun.at == NULL &&
        begin_record(timings, iterator, (Parcel *)parcel) < 0) {
        goto done;
    }
    char *at = lane_slot(lane, &n);
    if (at == NULL) {
        goto done;
    }
    if (enveloped) { /* otherwise the worker sent none */
        int64_t outstanding = attribute_as_number(iterator, name.outstanding);
        int64_t aside = outstanding == -1 && PyErr_Occurred() ? -1 : set_aside(iterator, outstanding);
        if (PyErr_Occurred()) {
            goto done;
        }
        if (at != timings->begun.at) {
            put_opened(at, timings, (Parcel *)parcel, &timings->begun.times);
        }
        int64_t ready = timings->begun.waiting < 0 ? -1 : timings->begun.waiting + aside;
        PUT_H(at, OUTSTANDING, MIN(outstanding, INT16_MAX));
        PUT_H(at, READY, MIN(ready, INT16_MAX));
        index_ns = timings->begun.index_ns;
        samples = timings->begun.samples;
        fetch = timings->begun.times.fetch;
        collate = timings->begun.times.collate;
    }
    put_head(at, timings, lane->first + n, t0, t1 - t0, index_ns, fetch, collate, samples);
    if (timings->special) {
        PyObject *rest[] = {Py_NewRef(data), PyLong_FromLongLong(t1)};
        if (call_special(timings, name.finish_opened, lane, n, rest, 2) < 0) {
            goto done;
        }
    }
    if (tell_device(timings, lane, n, data) < 0) {
        goto done;
    }
    result = record_done(lane, timings, n, 0);
done:
    timings->begun.at = NULL;
    Py_XDECREF(parcel);
    Py_XDECREF(lane);
    return result;
}
