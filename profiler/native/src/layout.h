/* The clocks, and where the fields of records and envelopes lie: told by Python once. */

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#ifndef __linux__
#error "the clocks below are those of Python on Linux; elsewhere the Python form is used"
#endif
#ifdef Py_GIL_DISABLED
#error "the GIL is what keeps a record whole between two threads' steps"
#endif

#define METHOD_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR)

/* The clocks of time.monotonic_ns and time.thread_time_ns. */
static inline int64_t
clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define now_ns() clock_ns(CLOCK_MONOTONIC)
#define thread_cpu_ns() clock_ns(CLOCK_THREAD_CPUTIME_ID)

enum field {
    SEQ, T, WAIT, INDEX, FETCH, COLLATE, SAMPLES, EPOCH,
    T_FETCH, PACK, QUEUED, UNPACK, PIN, PICKLED, TASK, PID, WORKER, OUTSTANDING, READY,
    FETCH_CPU, COLLATE_CPU, BYTES, TENSORS, OWN, SAMPLE_MIN, SAMPLE_MEDIAN, SAMPLE_MAX,
    FIELDS
};

/* Names as in schema.BATCH, and the struct code under which C writes each. */
static const struct { const char *name; char code; } expected[FIELDS] = {
    [SEQ] = {"seq", 'q'}, [T] = {"t_ns", 'q'}, [WAIT] = {"wait_ns", 'q'}, [INDEX] = {"index_ns", 'q'},
    [FETCH] = {"fetch_ns", 'q'}, [COLLATE] = {"collate_ns", 'q'}, [SAMPLES] = {"samples", 'i'}, [EPOCH] = {"epoch", 'i'},
    [T_FETCH] = {"t_fetch_ns", 'q'}, [PACK] = {"pack_ns", 'q'}, [QUEUED] = {"queued_ns", 'q'},
    [UNPACK] = {"unpack_ns", 'q'}, [PIN] = {"pin_ns", 'q'}, [PICKLED] = {"pickled_bytes", 'q'}, [TASK] = {"task", 'i'},
    [PID] = {"worker_pid", 'i'}, [WORKER] = {"worker", 'h'}, [OUTSTANDING] = {"outstanding", 'h'},
    [READY] = {"ready", 'h'}, [FETCH_CPU] = {"fetch_cpu_ns", 'q'}, [COLLATE_CPU] = {"collate_cpu_ns", 'q'},
    [BYTES] = {"bytes", 'q'}, [TENSORS] = {"tensors", 'i'}, [OWN] = {"own_ns", 'f'},
    [SAMPLE_MIN] = {"sample_min_ns", 'f'}, [SAMPLE_MEDIAN] = {"sample_median_ns", 'f'},
    [SAMPLE_MAX] = {"sample_max_ns", 'f'},
};

/* envelope.TIMES and envelope.SENT as C sees them; `envelopes` compares their struct formats with these. */
#define TIMES_FORMAT "@8q3i3f"
#define SENT_FORMAT "@3q"
struct times {
    int64_t task, t_fetch, fetch, collate, fetch_cpu, collate_cpu, bytes, own;
    int32_t tensors, pid, worker;
    float fastest, median, slowest;
};
struct sent {
    int64_t pack, t_sent, length;
};
_Static_assert(sizeof(struct times) == 8 * 8 + 3 * 4 + 3 * 4, "struct times has gaps");
_Static_assert(sizeof(struct sent) == 3 * 8, "struct sent has gaps");
#define MARK_BYTES 16
#define META_BYTES ((Py_ssize_t)(MARK_BYTES + sizeof(struct times) + sizeof(struct sent)))
/* The mark lies in the last bytes of a message; only so much is searched. */
#define TAIL_BYTES (META_BYTES + 64)

static struct {
    Py_ssize_t header, record; /* bytes */
    Py_ssize_t at[FIELDS];     /* of a field in its record */
    int64_t every, rarely, until; /* batches from one looked at in detail to the next: up to record `until`, and then */
    /* Of envelopes: NULL and 0 until Python has told. */
    int64_t detail_every, at_first, always_ns; /* every so many tasks, the first ones, and those that took longer */
    PyObject *mark, *seal;                     /* bytes */
} layout;

static struct {
    PyObject *ls, *entered, *roll, *finish, *finish_opened, *begin_detail, *looked_at, *pin_memory, *auto_collation,
        *timings, *collate, *send_idx, *rcvd_idx, *in_order, *outstanding,
        *result_queue, *data_queue, *sem, *semlock, *get_value, *maxsize, *queue, *zero;
} name;

static int
code_size(char code)
{
    return code == 'q' ? 8 : code == 'h' ? 2 : 4;
}

PyDoc_STRVAR(records_doc,
"records(header, record, fields, every, rarely, until)\n\n"
"Tell where the fields of a batch's record lie. `fields` is {name: (struct code, offset)}.\n"
"ValueError where C would write something else.");

static PyObject *
records(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t header, record, at[FIELDS];
    long long every, rarely, until;
    PyObject *fields;
    if (!PyArg_ParseTuple(args, "nnO!LLL", &header, &record, &PyDict_Type, &fields, &every, &rarely, &until)) {
        return NULL;
    }
    for (int i = 0; i < FIELDS; i++) {
        PyObject *entry = PyDict_GetItemString(fields, expected[i].name);
        const char *code = "";
        if (entry != NULL && (!PyTuple_Check(entry) || !PyArg_ParseTuple(entry, "sn", &code, &at[i]))) {
            return NULL;
        }
        if (code[0] != expected[i].code || code[1] != '\0' || at[i] < 0 || at[i] + code_size(code[0]) > record) {
            return PyErr_Format(PyExc_ValueError, "field %s of a record is not as expected", expected[i].name);
        }
    }
    /* Counted by bit masks below. */
    if (header < 0 || record < 1 || every < 1 || (every & (every - 1)) != 0 || rarely < every ||
        (rarely & (rarely - 1)) != 0) {
        PyErr_SetString(PyExc_ValueError, "the sizes of a record are not as expected");
        return NULL;
    }
    layout.header = header;
    layout.record = record;
    layout.every = every;
    layout.rarely = rarely;
    layout.until = until;
    memcpy(layout.at, at, sizeof at);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(envelopes_doc,
"envelopes(times, sent, mark, seal, every, at_first, always_ns)\n\n"
"Tell of what an envelope is made, and which are filled by Python. ValueError where C would make something else.");

static PyObject *
envelopes(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *times, *sent;
    PyObject *mark, *seal;
    long long every, at_first, always_ns;
    if (!PyArg_ParseTuple(args, "ssSSLLL", &times, &sent, &mark, &seal, &every, &at_first, &always_ns)) {
        return NULL;
    }
    if (strcmp(times, TIMES_FORMAT) != 0 || strcmp(sent, SENT_FORMAT) != 0 || PyBytes_GET_SIZE(mark) != MARK_BYTES ||
        every < 1) {
        PyErr_SetString(PyExc_ValueError, "an envelope is not as expected");
        return NULL;
    }
    layout.detail_every = every;
    layout.at_first = at_first;
    layout.always_ns = always_ns;
    Py_XSETREF(layout.mark, Py_NewRef(mark));
    Py_XSETREF(layout.seal, Py_NewRef(seal));
    Py_RETURN_NONE;
}

/* memcpy of a constant size: one store, whatever the alignment. */
#define PUT(type, at, field, value) \
    do { type put_ = (type)(value); memcpy((at) + layout.at[field], &put_, sizeof put_); } while (0)
#define PUT_Q(at, field, value) PUT(int64_t, at, field, value)
#define PUT_I(at, field, value) PUT(int32_t, at, field, value)
#define PUT_H(at, field, value) PUT(int16_t, at, field, value)
#define PUT_F(at, field, value) PUT(float, at, field, value)
