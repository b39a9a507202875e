/* What runs once a batch, compiled: clock readings, the record, and the envelope's way through the queue.
 *
 * An option: hot.py takes it where it could be built, and the Python beside it otherwise. Every function here does what
 * its Python form does, in the same order, and hands all that is rare (detail, devices, full segments, exceptions) to
 * that Python. A C function has no frame, so nothing of ours stands between the user's line and the user's code.
 *
 * Where the fields of records lie is told by Python (`records`), of what envelopes are made is compared with what is
 * written here (`envelopes`); where the two do not agree, the Python form is used.
 */

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

/* Layout ---------------------------------------------------------------------------------------------------------- */

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
    PyObject *ls, *entered, *roll, *finish, *finish_opened, *begin_detail, *pin_memory, *auto_collation, *sampler_iter,
        *fetcher, *fetch, *marks, *collate, *send_idx, *rcvd_idx, *in_order, *outstanding,
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

/* Errors in hand ---------------------------------------------------------------------------------------------------- */

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

/* LaneState: what the hot path needs of a lane -------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    long long count, capacity, first;
    PyObject *buf, *committed;
    /* Held as long as they are the lane's: while C knows an address, the memory behind it stays mapped. */
    Py_buffer records, counter;
    int counter_mapped; /* the count is eight bytes of memory; otherwise something with a __setitem__ */
} LaneState;

static PyObject *
lane_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return type->tp_alloc(type, 0); /* zeroed: no buffer, no room */
}

static int
lane_traverse(LaneState *self, visitproc visit, void *arg)
{
    Py_VISIT(self->buf);
    Py_VISIT(self->committed);
    /* Not the references that `records` and `counter` hold: a memoryview with an export must not be cleared by the
     * garbage collector before that is released (Python 3.10 crashes), and an uncounted reference keeps it out. */
    return 0;
}

static int
lane_clear(LaneState *self)
{
    self->counter_mapped = 0;
    PyBuffer_Release(&self->counter); /* does nothing where there is none */
    PyBuffer_Release(&self->records);
    self->records.buf = self->counter.buf = NULL;
    self->records.len = 0;
    Py_CLEAR(self->committed);
    Py_CLEAR(self->buf);
    return 0;
}

static void
lane_dealloc(LaneState *self)
{
    PyObject_GC_UnTrack(self);
    lane_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
lane_get(PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "not set yet");
        return NULL;
    }
    return Py_NewRef(value);
}

static PyObject *
lane_get_buf(LaneState *self, void *Py_UNUSED(closure))
{
    return lane_get(self->buf);
}

static int
lane_set_buf(LaneState *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_buffer fresh, old = self->records;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "buf cannot be deleted");
        return -1;
    }
    if (PyObject_GetBuffer(value, &fresh, PyBUF_WRITABLE) < 0) {
        return -1;
    }
    self->records = fresh;
    /* Last: letting go may unmap, and run code. */
    PyObject *old_object = self->buf;
    self->buf = Py_NewRef(value);
    PyBuffer_Release(&old);
    Py_XDECREF(old_object);
    return 0;
}

static PyObject *
lane_get_committed(LaneState *self, void *Py_UNUSED(closure))
{
    return lane_get(self->committed);
}

static int
lane_set_committed(LaneState *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_buffer fresh = {0}, old = self->counter;
    int mapped = 0;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "committed cannot be deleted");
        return -1;
    }
    if (PyMemoryView_Check(value)) {
        if (PyObject_GetBuffer(value, &fresh, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_ND) < 0) {
            return -1;
        }
        mapped = fresh.len >= 8 && fresh.format != NULL && strcmp(fresh.format, "Q") == 0 &&
                 (uintptr_t)fresh.buf % 8 == 0;
        if (!mapped) {
            PyBuffer_Release(&fresh);
            memset(&fresh, 0, sizeof fresh);
        }
    }
    self->counter = fresh;
    self->counter_mapped = mapped;
    PyObject *old_object = self->committed;
    self->committed = Py_NewRef(value);
    PyBuffer_Release(&old);
    Py_XDECREF(old_object);
    return 0;
}

static PyMemberDef lane_members[] = {
    {"count", T_LONGLONG, offsetof(LaneState, count), 0, "records in this segment"},
    {"capacity", T_LONGLONG, offsetof(LaneState, capacity), 0, "records that fit this segment"},
    {"first", T_LONGLONG, offsetof(LaneState, first), 0, "seq of this segment's first record"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef lane_getset[] = {
    {"buf", (getter)lane_get_buf, (setter)lane_set_buf, "header and records", NULL},
    {"committed", (getter)lane_get_committed, (setter)lane_set_committed, "[0] is the published count", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject LaneStateType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler._hot.LaneState",
    .tp_doc = "What the hot path needs of a lane.",
    .tp_basicsize = sizeof(LaneState),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = lane_new,
    .tp_dealloc = (destructor)lane_dealloc,
    .tp_traverse = (traverseproc)lane_traverse,
    .tp_clear = (inquiry)lane_clear,
    .tp_members = lane_members,
    .tp_getset = lane_getset,
};

/* Where the next record goes, its number in `*n`; NULL with an error set where that is outside the lane's memory. */
static char *
lane_slot(LaneState *lane, int64_t *n)
{
    *n = lane->count;
    if (*n >= lane->capacity) {
        PyObject *rolled = PyObject_CallMethodNoArgs((PyObject *)lane, name.roll);
        if (rolled == NULL) {
            return NULL;
        }
        *n = PyLong_AsLongLong(rolled);
        Py_DECREF(rolled);
        if (*n == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    if (*n < 0 || lane->records.buf == NULL || *n >= (lane->records.len - layout.header) / layout.record) {
        PyErr_Format(PyExc_RuntimeError, "record %lld is outside its segment", (long long)*n);
        return NULL;
    }
    return (char *)lane->records.buf + layout.header + *n * layout.record;
}

/* The next record's memory was last touched long ago, if ever: have it brought near before it is written to. */
static void
lane_near(LaneState *lane)
{
    int64_t n = lane->count;
    if (n >= 0 && n < lane->capacity && lane->records.buf != NULL) {
        const char *at = (const char *)lane->records.buf + layout.header + n * layout.record;
        __builtin_prefetch(at, 1);
        __builtin_prefetch(at + 63, 1);
        if (lane->counter_mapped) {
            __builtin_prefetch(lane->counter.buf, 1);
        }
    }
}

/* Publish `n` records: what was written before is seen by whoever sees the count. */
static int
lane_publish(LaneState *lane, int64_t n)
{
    if (lane->counter_mapped) {
        __atomic_store_n((uint64_t *)lane->counter.buf, (uint64_t)n, __ATOMIC_RELEASE);
    }
    else {
        if (lane->committed == NULL) {
            PyErr_SetString(PyExc_AttributeError, "committed");
            return -1;
        }
        PyObject *count = PyLong_FromLongLong(n);
        if (count == NULL) {
            return -1;
        }
        int failed = PyObject_SetItem(lane->committed, name.zero, count);
        Py_DECREF(count);
        if (failed < 0) {
            return -1;
        }
    }
    lane->count = n;
    return 0;
}

/* Marks: the batch in hand ---------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    long long t_fetch, t_collate, t_collated, t_cpu_fetch, t_cpu_collate, t_index, taken, samples, epoch, tasks;
    char detailed, special;
    PyObject *lane, *device, *envelope, *drawn, *looks;
    /* Of a batch whose record was begun as it came out of its envelope, see `begin_record`. */
    struct {
        char *at; /* NULL: none was */
        struct times times;
        int64_t index_ns, samples, waiting;
    } begun;
} Marks;

static PyObject *
marks_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Marks *self = (Marks *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->detailed = self->special = 1;
        self->samples = -1;
        self->lane = Py_NewRef(Py_None);
        self->device = Py_NewRef(Py_None);
        self->envelope = Py_NewRef(Py_None);
        self->drawn = Py_NewRef(Py_None);
        self->looks = Py_NewRef(Py_None);
    }
    return (PyObject *)self;
}

static int
marks_traverse(Marks *self, visitproc visit, void *arg)
{
    Py_VISIT(self->lane);
    Py_VISIT(self->device);
    Py_VISIT(self->envelope);
    Py_VISIT(self->drawn);
    Py_VISIT(self->looks);
    return 0;
}

static int
marks_clear(Marks *self)
{
    Py_CLEAR(self->lane);
    Py_CLEAR(self->device);
    Py_CLEAR(self->envelope);
    Py_CLEAR(self->drawn);
    Py_CLEAR(self->looks);
    return 0;
}

static void
marks_dealloc(Marks *self)
{
    PyObject_GC_UnTrack(self);
    marks_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Flags take any value by its truth, as a Python attribute would. */
static PyObject *
marks_get_flag(Marks *self, void *closure)
{
    return PyBool_FromLong(*((char *)self + (Py_ssize_t)closure));
}

static int
marks_set_flag(Marks *self, PyObject *value, void *closure)
{
    int truth = value == NULL ? -1 : PyObject_IsTrue(value);
    if (truth < 0) {
        if (value == NULL) {
            PyErr_SetString(PyExc_AttributeError, "a flag cannot be deleted");
        }
        return -1;
    }
    *((char *)self + (Py_ssize_t)closure) = (char)truth;
    return 0;
}

#define MARKS_TIME(field) {#field, T_LONGLONG, offsetof(Marks, field), 0, NULL}
#define MARKS_OBJECT(field) {#field, T_OBJECT_EX, offsetof(Marks, field), 0, NULL}
static PyMemberDef marks_members[] = {
    MARKS_TIME(t_fetch), MARKS_TIME(t_collate), MARKS_TIME(t_collated), MARKS_TIME(t_cpu_fetch),
    MARKS_TIME(t_cpu_collate), MARKS_TIME(t_index), MARKS_TIME(taken), MARKS_TIME(samples), MARKS_TIME(epoch),
    MARKS_TIME(tasks), MARKS_OBJECT(lane), MARKS_OBJECT(device), MARKS_OBJECT(envelope), MARKS_OBJECT(drawn),
    MARKS_OBJECT(looks),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef marks_getset[] = {
    {"detailed", (getter)marks_get_flag, (setter)marks_set_flag, NULL, (void *)offsetof(Marks, detailed)},
    {"special", (getter)marks_get_flag, (setter)marks_set_flag, NULL, (void *)offsetof(Marks, special)},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject MarksType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler._hot.Marks",
    .tp_doc = "The clock readings of the batch being made.",
    .tp_basicsize = sizeof(Marks),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = marks_new,
    .tp_dealloc = (destructor)marks_dealloc,
    .tp_traverse = (traverseproc)marks_traverse,
    .tp_clear = (inquiry)marks_clear,
    .tp_members = marks_members,
    .tp_getset = marks_getset,
};

/* The iterator whose `__next__` was entered last, its step, and the fetcher it has handed indices to. They spare the
   look-ups of the calls inside. Borrowed, and compared before use: whoever enters sets them and whoever leaves clears
   them, so that what they name is alive as long as they name it, in whichever order threads take turns. */
static struct {
    PyObject *iterator, *fetcher;
    Marks *step;
} entered;

/* The iterator's step: a new reference, NULL without an error where it has none, NULL with one on failure. */
static Marks *
step_of(PyObject *iterator)
{
    if (iterator == entered.iterator) {
        return (Marks *)Py_NewRef((PyObject *)entered.step);
    }
    PyObject *step = PyObject_GetAttr(iterator, name.ls);
    if (step == NULL || PyObject_TypeCheck(step, &MarksType)) {
        return (Marks *)step;
    }
    Py_DECREF(step);
    return NULL;
}

static LaneState *
lane_of(Marks *step)
{
    if (step->lane == NULL || !PyObject_TypeCheck(step->lane, &LaneStateType)) {
        PyErr_SetString(PyExc_TypeError, "a step without a lane");
        return NULL;
    }
    return (LaneState *)Py_NewRef(step->lane);
}

/* How many samples the indices stand for: as torch without automatic batching, one; -1 where that is not plain. */
static int
samples_of(PyObject *iterator, PyObject *index, long long *samples)
{
    if (PyList_CheckExact(index)) {
        *samples = PyList_GET_SIZE(index);
        return 0;
    }
    PyObject *batching = PyObject_GetAttr(iterator, name.auto_collation);
    int truth = batching == NULL ? -1 : PyObject_IsTrue(batching);
    Py_XDECREF(batching);
    *samples = truth ? -1 : 1;
    return truth < 0 ? -1 : 0;
}

/* Hook: a callable that does something around another -------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *base;    /* what would be called without us */
    PyObject *more[3]; /* what each kind of hook needs besides */
    int64_t t_last;    /* of those that remember a moment */
} Hook;

static int
hook_traverse(Hook *self, visitproc visit, void *arg)
{
    Py_VISIT(self->base);
    for (int i = 0; i < 3; i++) {
        Py_VISIT(self->more[i]);
    }
    return 0;
}

static int
hook_clear(Hook *self)
{
    Py_CLEAR(self->base);
    for (int i = 0; i < 3; i++) {
        Py_CLEAR(self->more[i]);
    }
    return 0;
}

static void
hook_dealloc(Hook *self)
{
    PyObject_GC_UnTrack(self);
    hook_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* In a class it is a method, as a function is. */
static PyObject *
hook_bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyMemberDef hook_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(Hook, base), READONLY, "what would be called without the hook"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject HookType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler._hot.Hook",
    .tp_doc = "A callable that looks at the clock around another.",
    .tp_basicsize = sizeof(Hook),
    .tp_flags = METHOD_FLAGS,
    .tp_dealloc = (destructor)hook_dealloc,
    .tp_traverse = (traverseproc)hook_traverse,
    .tp_clear = (inquiry)hook_clear,
    .tp_vectorcall_offset = offsetof(Hook, call),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = hook_bind,
    .tp_members = hook_members,
};

#define RECORDS_TOLD (layout.record > 0)
#define ENVELOPES_TOLD (layout.seal != NULL)

static PyObject *
hook_new(vectorcallfunc call, int told, PyObject *base, PyObject *first, PyObject *second, PyObject *third)
{
    if (!told) {
        PyErr_SetString(PyExc_RuntimeError, "the layout has not been told");
        return NULL;
    }
    Hook *self = PyObject_GC_New(Hook, &HookType);
    if (self == NULL) {
        return NULL;
    }
    self->call = call;
    self->base = Py_NewRef(base);
    self->more[0] = Py_XNewRef(first);
    self->more[1] = Py_XNewRef(second);
    self->more[2] = Py_XNewRef(third);
    self->t_last = 0;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* Steps: __next__ ------------------------------------------------------------------------------------------------------ */

enum { ON_END, ON_FAILURE }; /* `more` of the two step hooks */

/* The base has raised: note the end, and raise the same again. */
static void
step_ended(Hook *hook, Marks *step, int64_t t0)
{
    PyObject *error = take_error();
    PyObject *time = PyLong_FromLongLong(t0);
    PyObject *done = NULL;
    if (time != NULL) {
        PyObject *args[] = {(PyObject *)step, time, error};
        done = PyObject_Vectorcall(hook->more[ON_END], args, 3, NULL);
        Py_DECREF(time);
    }
    if (done != NULL) {
        Py_DECREF(done);
        give_error(error);
        return;
    }
    /* Interrupted: that is what the loop sees, raised while handling the other. */
    PyObject *newer = take_error();
    PyException_SetContext(newer, error);
    give_error(newer);
}

/* Our part has failed: 0 where the loop may go on with its batch, -1 where the error is none of ours (Ctrl-C). */
static int
step_failed(Hook *hook, PyObject *iterator, Marks *step)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *error = take_error();
    PyObject *args[] = {iterator, (PyObject *)step, error};
    PyObject *done = PyObject_Vectorcall(hook->more[ON_FAILURE], args, 3, NULL);
    Py_DECREF(error);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static void
put_head(char *at, Marks *step, int64_t seq, int64_t t0, int64_t wait, int64_t index, int64_t fetch, int64_t collate,
         int64_t samples)
{
    PUT_Q(at, SEQ, seq);
    PUT_Q(at, T, t0);
    PUT_Q(at, WAIT, wait);
    PUT_Q(at, INDEX, index);
    PUT_Q(at, FETCH, fetch);
    PUT_Q(at, COLLATE, collate);
    PUT_I(at, SAMPLES, samples);
    PUT_I(at, EPOCH, step->epoch);
}

/* Publish record `n`, and choose whether the next batch is looked at. */
static int
step_done(LaneState *lane, Marks *step, int64_t n, int detailed)
{
    if (lane_publish(lane, n + 1) < 0) {
        return -1;
    }
    int64_t seq = lane->first + n;
    if ((seq & ((seq <= layout.until ? layout.every : layout.rarely) - 1)) == 0) {
        step->special = 1;
        if (detailed) {
            step->detailed = 1;
        }
    }
    return 0;
}

/* Call a method of the step with the lane, the record's number, and up to four more; takes references to those. */
static int
step_special(Marks *step, PyObject *method, LaneState *lane, int64_t n, PyObject *const *rest, size_t count)
{
    PyObject *args[8] = {(PyObject *)step, (PyObject *)lane, PyLong_FromLongLong(n)};
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
record_made(Hook *Py_UNUSED(hook), PyObject *iterator, Marks *step, PyObject *data, int64_t t0, int64_t t1)
{
    int64_t n;
    int result = -1;
    LaneState *lane = lane_of(step);
    if (lane == NULL) {
        return -1;
    }
    char *at = lane_slot(lane, &n);
    if (at == NULL) {
        goto done;
    }
    put_head(at, step, lane->first + n, t0, t1 - t0, step->t_fetch - step->t_index, step->t_collate - step->t_fetch,
             step->t_collated - step->t_collate, step->samples);
    if (step->special) {
        PyObject *rest[] = {Py_NewRef(data), PyLong_FromLongLong(t1), PyLong_FromLongLong(t1 - t0),
                            PyObject_GetAttr(iterator, name.pin_memory)};
        if (step_special(step, name.finish, lane, n, rest, 4) < 0) {
            goto done;
        }
    }
    result = step_done(lane, step, n, 1);
done:
    Py_DECREF(lane);
    return result;
}

typedef struct {
    PyObject_HEAD
    PyObject *payload, *meta;
    long long pack_ns, t_sent_ns, pickled_bytes, unpack_ns, pin_ns;
} Parcel;

static PyTypeObject ParcelType;

/* What was noted when this task's indices were drawn: -1 and -1 where nothing was. */
static int
take_drawn(Marks *step, int64_t task, int64_t *index_ns, int64_t *samples)
{
    *index_ns = *samples = -1;
    if (step->drawn == NULL || !PyDict_CheckExact(step->drawn)) {
        PyErr_SetString(PyExc_TypeError, "a step without a table of tasks");
        return -1;
    }
    PyObject *key = PyLong_FromLongLong(task);
    if (key == NULL) {
        return -1;
    }
    PyObject *noted = PyDict_GetItemWithError(step->drawn, key);
    int result = 0;
    if (noted != NULL) {
        if (PyTuple_CheckExact(noted) && PyTuple_GET_SIZE(noted) == 2) {
            *index_ns = PyLong_AsLongLong(PyTuple_GET_ITEM(noted, 0));
            *samples = PyLong_AsLongLong(PyTuple_GET_ITEM(noted, 1));
        }
        result = PyDict_DelItem(step->drawn, key);
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
put_opened(char *at, Marks *step, Parcel *parcel, const struct times *times)
{
    int sent = parcel->t_sent_ns > 0;
    int64_t queued = step->taken - parcel->t_sent_ns - parcel->unpack_ns - MAX(0, parcel->pin_ns);
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
    PUT_F(at, OWN, Py_NAN);
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
begin_record(Marks *step, PyObject *iterator, Parcel *parcel)
{
    int64_t n;
    memcpy(&step->begun.times, PyBytes_AS_STRING(parcel->meta) + MARK_BYTES, sizeof step->begun.times);
    step->begun.waiting = waiting_in_queues(iterator);
    if (take_drawn(step, step->begun.times.task, &step->begun.index_ns, &step->begun.samples) < 0) {
        return -1;
    }
    LaneState *lane = lane_of(step);
    char *at = lane == NULL ? NULL : lane_slot(lane, &n);
    Py_XDECREF(lane); /* the step's own */
    if (at == NULL) {
        return -1;
    }
    put_opened(at, step, parcel, &step->begun.times);
    step->begun.at = at;
    return 0;
}

/* The record of a batch that came from a worker. */
static int
record_received(Hook *Py_UNUSED(hook), PyObject *iterator, Marks *step, PyObject *data, int64_t t0, int64_t t1)
{
    int64_t n, index_ns = -1, samples = -1, fetch = -1, collate = -1;
    int result = -1;
    LaneState *lane = lane_of(step);
    PyObject *parcel = step->envelope;
    step->envelope = Py_NewRef(Py_None);
    if (lane == NULL) {
        goto done;
    }
    int enveloped = parcel != NULL && PyObject_TypeCheck(parcel, &ParcelType);
    if (enveloped && step->begun.at == NULL &&
        begin_record(step, iterator, (Parcel *)parcel) < 0) {
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
        if (at != step->begun.at) {
            put_opened(at, step, (Parcel *)parcel, &step->begun.times);
        }
        int64_t ready = step->begun.waiting < 0 ? -1 : step->begun.waiting + aside;
        PUT_H(at, OUTSTANDING, MIN(outstanding, INT16_MAX));
        PUT_H(at, READY, MIN(ready, INT16_MAX));
        index_ns = step->begun.index_ns;
        samples = step->begun.samples;
        fetch = step->begun.times.fetch;
        collate = step->begun.times.collate;
    }
    put_head(at, step, lane->first + n, t0, t1 - t0, index_ns, fetch, collate, samples);
    if (step->special) {
        PyObject *rest[] = {Py_NewRef(data), PyLong_FromLongLong(t1)};
        if (step_special(step, name.finish_opened, lane, n, rest, 2) < 0) {
            goto done;
        }
    }
    result = step_done(lane, step, n, 0);
done:
    step->begun.at = NULL;
    Py_XDECREF(parcel);
    Py_XDECREF(lane);
    return result;
}

typedef int (*recording)(Hook *, PyObject *, Marks *, PyObject *, int64_t, int64_t);

static inline PyObject *
stepped(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames, recording record)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    Marks *step = iterator == NULL ? NULL : step_of(iterator);
    if (step == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    int64_t t0 = now_ns();
    PyObject *data = NULL;
    if (step->device != NULL && step->device != Py_None) {
        PyObject *device = Py_NewRef(step->device);
        PyObject *entered = PyObject_CallMethodNoArgs(device, name.entered);
        Py_DECREF(device);
        if (entered == NULL) {
            goto done;
        }
        Py_DECREF(entered);
    }
    entered.iterator = iterator;
    entered.step = step;
    entered.fetcher = NULL;
    step->begun.at = NULL;
    data = PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    entered.iterator = entered.fetcher = NULL;
    entered.step = NULL;
    if (data == NULL) {
        step_ended(hook, step, t0);
        goto done;
    }
    int64_t t1 = now_ns();
    if (record(hook, iterator, step, data, t0, t1) < 0 && step_failed(hook, iterator, step) < 0) {
        Py_CLEAR(data);
    }
done:
    Py_DECREF(step);
    return data;
}

static PyObject *
stepping_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return stepped(callable, args, nargsf, kwnames, record_made);
}

static PyObject *
receiving_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return stepped(callable, args, nargsf, kwnames, record_received);
}

/* Hooks of an iterator without workers ---------------------------------------------------------------------------------- */

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

/* CollateMark: a fetcher's `collate_fn`; asking for it is the moment between fetch and collate ------------------------------ */

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
        Marks *step = (Marks *)marks;
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
    .tp_name = "loaderscope.profiler._hot.CollateMark",
    .tp_doc = "A fetcher's collate_fn: asking for it marks where collating begins.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_descr_get = collate_get,
    .tp_descr_set = collate_set,
};

/* Stamping: an iterator over a list that notes when each item is asked for, and the end -------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *items, *stamps; /* lists; NULL once it has ended */
    Py_ssize_t next;
} Stamping;

static int
stamping_traverse(Stamping *self, visitproc visit, void *arg)
{
    Py_VISIT(self->items);
    Py_VISIT(self->stamps);
    return 0;
}

static int
stamping_clear(Stamping *self)
{
    Py_CLEAR(self->items);
    Py_CLEAR(self->stamps);
    return 0;
}

static void
stamping_dealloc(Stamping *self)
{
    PyObject_GC_UnTrack(self);
    stamping_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
stamping_next(Stamping *self)
{
    if (self->items == NULL) {
        return NULL;
    }
    PyObject *stamp = PyLong_FromLongLong(now_ns());
    if (stamp == NULL) {
        return NULL;
    }
    int failed = PyList_Append(self->stamps, stamp);
    Py_DECREF(stamp);
    if (failed < 0) {
        return NULL;
    }
    if (self->next < PyList_GET_SIZE(self->items)) {
        return Py_NewRef(PyList_GET_ITEM(self->items, self->next++));
    }
    stamping_clear(self);
    return NULL;
}

static PyObject *
stamping_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *items, *stamps;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &items, &PyList_Type, &stamps)) {
        return NULL;
    }
    Stamping *self = (Stamping *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->items = Py_NewRef(items);
        self->stamps = Py_NewRef(stamps);
    }
    return (PyObject *)self;
}

static PyTypeObject StampingType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler._hot.Stamping",
    .tp_doc = "An iterator over a list that notes when each item is asked for, and the end.",
    .tp_basicsize = sizeof(Stamping),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = stamping_new,
    .tp_dealloc = (destructor)stamping_dealloc,
    .tp_traverse = (traverseproc)stamping_traverse,
    .tp_clear = (inquiry)stamping_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)stamping_next,
};

/* Parcel: a batch and its times, in main -------------------------------------------------------------------------------- */

static PyObject *
parcel_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *payload, *meta;
    long long unpack_ns;
    struct sent sent;
    if (!PyArg_ParseTuple(args, "OSL", &payload, &meta, &unpack_ns)) {
        return NULL;
    }
    if (PyBytes_GET_SIZE(meta) != META_BYTES) {
        PyErr_SetString(PyExc_ValueError, "an envelope of another length");
        return NULL;
    }
    Parcel *self = (Parcel *)type->tp_alloc(type, 0);
    if (self != NULL) {
        memcpy(&sent, PyBytes_AS_STRING(meta) + MARK_BYTES + sizeof(struct times), sizeof sent);
        self->payload = Py_NewRef(payload);
        self->meta = Py_NewRef(meta);
        self->pack_ns = sent.pack;
        self->t_sent_ns = sent.t_sent;
        self->pickled_bytes = sent.length;
        self->unpack_ns = unpack_ns;
        self->pin_ns = -1;
    }
    return (PyObject *)self;
}

static int
parcel_traverse(Parcel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->payload);
    return 0;
}

static int
parcel_clear(Parcel *self)
{
    Py_CLEAR(self->payload);
    return 0;
}

static void
parcel_dealloc(Parcel *self)
{
    PyObject_GC_UnTrack(self);
    parcel_clear(self);
    Py_XDECREF(self->meta);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
parcel_times(Parcel *self, void *Py_UNUSED(closure))
{
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self->meta) + MARK_BYTES, sizeof(struct times));
}

#define PARCEL_TIME(field) {#field, T_LONGLONG, offsetof(Parcel, field), 0, NULL}
static PyMemberDef parcel_members[] = {
    {"payload", T_OBJECT, offsetof(Parcel, payload), 0, "the batch"},
    PARCEL_TIME(pack_ns), PARCEL_TIME(t_sent_ns), PARCEL_TIME(pickled_bytes), PARCEL_TIME(unpack_ns),
    PARCEL_TIME(pin_ns),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef parcel_getset[] = {
    {"times", (getter)parcel_times, NULL, "what envelope.TIMES packs", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject ParcelType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "loaderscope.profiler._hot.Parcel",
    .tp_doc = "A batch and its times (ns), in main.",
    .tp_basicsize = sizeof(Parcel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = parcel_new,
    .tp_dealloc = (destructor)parcel_dealloc,
    .tp_traverse = (traverseproc)parcel_traverse,
    .tp_clear = (inquiry)parcel_clear,
    .tp_members = parcel_members,
    .tp_getset = parcel_getset,
};

/* Hooks of an iterator with workers, in main ------------------------------------------------------------------------------ */

enum { WITH_CARE };                /* `more` of `_next_index` */
enum { ENVELOPE, OTHERWISE };      /* `more` of `_process_data` */
enum { ARRIVAL, INTO };             /* `more` of `get` */

static PyObject *
indexing_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    PyObject *iterator = PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL ? args[0] : NULL;
    Marks *step = iterator == NULL ? NULL : step_of(iterator);
    if (step == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    }
    PyObject *index = NULL, *task = NULL, *noted = NULL;
    if (step->looks != Py_None || step->drawn == NULL || !PyDict_CheckExact(step->drawn)) {
        /* The first tasks of an iteration are looked at, by the Python form. */
        index = PyObject_Vectorcall(hook->more[WITH_CARE], args, nargsf, NULL);
        goto done;
    }
    long long samples;
    int64_t t0 = now_ns();
    index = PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    if (index == NULL) {
        goto done;
    }
    int64_t took = now_ns() - t0;
    task = PyObject_GetAttr(iterator, name.send_idx);
    noted = samples_of(iterator, index, &samples) < 0 ? NULL : Py_BuildValue("LL", (long long)took, samples);
    if (task == NULL || noted == NULL || PyDict_SetItem(step->drawn, task, noted) < 0) {
        Py_CLEAR(index);
    }
done:
    Py_XDECREF(noted);
    Py_XDECREF(task);
    Py_DECREF(step);
    return index;
}

/* `_process_data(self, data, *rest)`: an envelope gives its batch; anything else goes to the Python form. */
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
    Marks *step = step_of(args[0]);
    if (step != NULL) {
        step->taken = now_ns();
        Py_XSETREF(step->envelope, Py_NewRef((PyObject *)parcel));
        if (begin_record(step, args[0], parcel) < 0) {
            PyErr_Clear(); /* it will fail again where such things are seen to */
        }
        Py_DECREF(step);
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
opened(PyObject *data, long long unpack_ns, PyObject *envelope)
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
    PyObject *content = opened(PyTuple_GET_ITEM(message, 1), unpack_ns, hook->more[INTO]);
    PyObject *result = content == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(message, 0), content);
    Py_XDECREF(content);
    Py_DECREF(message);
    return result;
}

/* Hooks in a worker ------------------------------------------------------------------------------------------------------- */

enum { MARKS, BEGIN };            /* `more` of the task queue's `get` */
enum { /* MARKS, */ CAREFULLY = 1, WHO }; /* `more` of the result queue's `put` */
enum { EMPTY_BYTES };             /* `more` of `_send_bytes` */

static int
is_numbered(PyObject *message)
{
    return PyTuple_CheckExact(message) && PyTuple_GET_SIZE(message) == 2 &&
           PyLong_CheckExact(PyTuple_GET_ITEM(message, 0));
}

/* A task arrives. One to be looked at in detail is begun by the Python form. */
static PyObject *
taking_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    Marks *marks = (Marks *)hook->more[MARKS];
    PyObject *message = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    if (message == NULL || !is_numbered(message)) {
        return message;
    }
    if (marks->detailed || (marks->tasks + 1) % layout.detail_every == 0) {
        PyObject *index = PyObject_CallOneArg(hook->more[BEGIN], PyTuple_GET_ITEM(message, 1));
        PyObject *result = index == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(message, 0), index);
        Py_XDECREF(index);
        Py_DECREF(message);
        return result;
    }
    marks->tasks++;
    marks->t_collate = 0;
    marks->t_fetch = now_ns();
    return message;
}

/* What goes on the queue in place of `(task, batch)`; NULL with an error set where it cannot be made. */
static PyObject *
sealed(Marks *marks, PyObject *message, int32_t pid, int32_t worker)
{
    int64_t end = now_ns(), collating = marks->t_collate ? marks->t_collate : end;
    struct times times = {
        .task = PyLong_AsLongLong(PyTuple_GET_ITEM(message, 0)),
        .t_fetch = marks->t_fetch, .fetch = collating - marks->t_fetch, .collate = end - collating,
        .fetch_cpu = -1, .collate_cpu = -1, .bytes = -1, .own = -1, .tensors = -1, .pid = pid, .worker = worker,
        .fastest = (float)Py_NAN, .median = (float)Py_NAN, .slowest = (float)Py_NAN,
    };
    if (times.task == -1 && PyErr_Occurred()) {
        return NULL;
    }
    marks->detailed = times.fetch + times.collate > layout.always_ns || marks->tasks < layout.at_first;
    PyObject *result = NULL, *content = NULL, *meta = PyBytes_FromStringAndSize(NULL, META_BYTES);
    if (meta != NULL) {
        char *at = PyBytes_AS_STRING(meta);
        struct sent sent = {.t_sent = -1, .length = -1};
        sent.pack = now_ns(); /* until it is sent: the time of the put */
        times.own = sent.pack - end;
        memcpy(at, PyBytes_AS_STRING(layout.mark), MARK_BYTES);
        memcpy(at + MARK_BYTES, &times, sizeof times);
        memcpy(at + MARK_BYTES + sizeof times, &sent, sizeof sent);
        content = PyTuple_Pack(3, layout.seal, PyTuple_GET_ITEM(message, 1), meta);
    }
    if (content != NULL) {
        result = PyTuple_Pack(2, PyTuple_GET_ITEM(message, 0), content);
    }
    Py_XDECREF(content);
    Py_XDECREF(meta);
    return result;
}

/* A batch leaves. One that was looked at in detail, an error and a stream's end are handed to the Python form. */
static PyObject *
putting_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    Marks *marks = (Marks *)hook->more[MARKS];
    PyObject *who = hook->more[WHO]; /* (pid, worker id, types of what is no batch…) */
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL || marks->detailed || !is_numbered(args[0])) {
        return PyObject_Vectorcall(hook->more[CAREFULLY], args, nargsf, kwnames);
    }
    for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(who); i++) {
        if ((PyObject *)Py_TYPE(PyTuple_GET_ITEM(args[0], 1)) == PyTuple_GET_ITEM(who, i)) {
            return PyObject_Vectorcall(hook->more[CAREFULLY], args, nargsf, kwnames);
        }
    }
    int32_t pid = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(who, 0));
    int32_t worker = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(who, 1));
    PyObject *message = sealed(marks, args[0], pid, worker);
    if (message == NULL) { /* a failure of ours must never cost a batch */
        PyErr_Clear();
        return PyObject_Vectorcall(hook->base, args, nargsf, NULL);
    }
    PyObject *result = PyObject_CallOneArg(hook->base, message);
    Py_DECREF(message);
    return result;
}

/* Write into the pickled bytes when they are sent and what that took; -1 where they cannot be written. */
static int
fill_in(PyObject *message, int64_t t_free, int64_t empty_bytes)
{
    Py_buffer bytes;
    struct sent sent;
    if (PyObject_GetBuffer(message, &bytes, PyBUF_WRITABLE) < 0) {
        PyErr_Clear();
        return -1;
    }
    char *start = bytes.buf, *mark = PyBytes_AS_STRING(layout.mark);
    /* From the end on: the batch itself is pickled before. */
    Py_ssize_t at = bytes.len - META_BYTES, least = MAX(0, bytes.len - TAIL_BYTES);
    while (at >= least && memcmp(start + at, mark, MARK_BYTES) != 0) {
        at--;
    }
    if (at >= least) {
        char *place = start + at + MARK_BYTES + sizeof(struct times);
        memcpy(&sent, place, sizeof sent);
        sent.t_sent = now_ns();
        sent.pack = sent.t_sent - MAX(sent.pack, t_free);
        sent.length = bytes.len - empty_bytes;
        memcpy(place, &sent, sizeof sent);
    }
    PyBuffer_Release(&bytes);
    return 0;
}

/* `_send_bytes`, used by the queue's one feeder thread; since `t_last` it has had nothing else to do. */
static PyObject *
sending_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Hook *hook = (Hook *)callable;
    if (PyVectorcall_NARGS(nargsf) == 1) {
        int64_t empty_bytes = PyLong_AsLongLong(hook->more[EMPTY_BYTES]);
        if (fill_in(args[0], hook->t_last, empty_bytes) < 0) {
            hook->t_last = 0;
        }
    }
    PyObject *result = PyObject_Vectorcall(hook->base, args, nargsf, kwnames);
    hook->t_last = now_ns();
    return result;
}

/* The module ---------------------------------------------------------------------------------------------------------------- */

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
MAKER(drawing, 1, 1)
MAKER(indexing, 1, 1)
MAKER(processing, RECORDS_TOLD && ENVELOPES_TOLD, 2)
MAKER(arriving, 1, 0)

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
    PyObject *get, *marks, *begin;
    if (!PyArg_ParseTuple(args, "OO!O", &get, &MarksType, &marks, &begin)) {
        return NULL;
    }
    return hook_new(taking_call, ENVELOPES_TOLD, get, marks, begin, NULL);
}

static PyObject *
putting(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *put, *marks, *carefully, *who;
    if (!PyArg_ParseTuple(args, "OO!OO!", &put, &MarksType, &marks, &carefully, &PyTuple_Type, &who)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(who) < 2 || !PyLong_Check(PyTuple_GET_ITEM(who, 0)) ||
        !PyLong_Check(PyTuple_GET_ITEM(who, 1))) {
        PyErr_SetString(PyExc_TypeError, "pid, worker id and types are needed");
        return NULL;
    }
    return hook_new(putting_call, ENVELOPES_TOLD, put, marks, carefully, who);
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

static PyMethodDef functions[] = {
    {"records", records, METH_VARARGS, records_doc},
    {"envelopes", envelopes, METH_VARARGS, envelopes_doc},
    {"stepping", stepping, METH_VARARGS, "stepping(base, on_end, on_failure)"},
    {"receiving", receiving, METH_VARARGS, "receiving(base, on_end, on_failure)"},
    {"drawing", drawing, METH_VARARGS, "drawing(base, pinned)"},
    {"indexing", indexing, METH_VARARGS, "indexing(base, with_care)"},
    {"processing", processing, METH_VARARGS, "processing(base, envelope, otherwise)"},
    {"arriving", arriving, METH_VARARGS, "arriving(receive)"},
    {"getting", getting, METH_VARARGS, "getting(get, arrival, envelope)"},
    {"taking", taking, METH_VARARGS, "taking(get, marks, begin)"},
    {"putting", putting, METH_VARARGS, "putting(put, marks, carefully, who)"},
    {"sending", sending, METH_VARARGS, "sending(send, empty_bytes)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "loaderscope.profiler._hot",
    .m_doc = "What runs once a batch, compiled.",
    .m_size = -1,
    .m_methods = functions,
};

static int
intern_names(void)
{
    const struct { PyObject **place; const char *text; } names[] = {
        {&name.ls, "_ls"}, {&name.entered, "entered"}, {&name.roll, "roll"}, {&name.finish, "finish"},
        {&name.finish_opened, "finish_opened"}, {&name.begin_detail, "begin_detail"},
        {&name.pin_memory, "_pin_memory"}, {&name.auto_collation, "_auto_collation"},
        {&name.sampler_iter, "_sampler_iter"}, {&name.fetcher, "_dataset_fetcher"}, {&name.fetch, "fetch"},
        {&name.marks, "_loaderscope_marks"}, {&name.collate, "_loaderscope_collate"}, {&name.send_idx, "_send_idx"},
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
PyInit__hot(void)
{
    static const struct { const char *name; PyTypeObject *type; } types[] = {
        {"LaneState", &LaneStateType}, {"Marks", &MarksType}, {"Parcel", &ParcelType}, {"Hook", &HookType},
        {"CollateMark", &CollateMarkType}, {"Stamping", &StampingType},
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
    if (intern_names() < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}
