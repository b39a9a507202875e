/* Which files the thread that is looking opens, or all threads: an audit hook for the event "open", see opens.py.
 *
 * A hook can never be taken away, and is called for every audited event of the process (each `id()` is one), so all it
 * does while no look is under way is to read one flag. It never raises: an error here would be the user's `open`
 * failing.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fcntl.h>
#include <string.h>

#ifdef Py_GIL_DISABLED
#error "the GIL is what keeps the list whole; without one the Python form is used"
#endif

static int installed, active;
static unsigned long looking; /* the thread; 0: all */
static PyObject *paths;       /* list; NULL while no look is under way */
static Py_ssize_t most;

static int
on_event(const char *event, PyObject *args, void *Py_UNUSED(data))
{
    if (!active || strcmp(event, "open") != 0 || paths == NULL ||
        (looking != 0 && PyThread_get_thread_ident() != looking)) {
        return 0;
    }
    if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) != 3 || PyList_GET_SIZE(paths) >= most) {
        return 0;
    }
    PyObject *path = PyTuple_GET_ITEM(args, 0), *flags = PyTuple_GET_ITEM(args, 2);
    if (PyLong_CheckExact(path)) { /* a descriptor, opened before */
        return 0;
    }
    if (PyLong_CheckExact(flags)) {
        int overflow;
        long value = PyLong_AsLongAndOverflow(flags, &overflow);
        if (!overflow && ((value & O_ACCMODE) == O_WRONLY || (value & O_EXCL))) {
            return 0; /* to be written, or made by this very call: no data is in it */
        }
    }
    if (PyList_Append(paths, path) < 0) {
        PyErr_Clear();
    }
    return 0;
}

static PyObject *
install(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (!installed) {
        if (PySys_AddAuditHook(on_event, NULL) < 0) {
            return NULL;
        }
        installed = 1;
    }
    Py_RETURN_NONE;
}

static PyObject *
begin(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t wanted;
    int all;
    if (!PyArg_ParseTuple(args, "np", &wanted, &all)) {
        return NULL;
    }
    PyObject *fresh = PyList_New(0);
    if (fresh == NULL) {
        return NULL;
    }
    most = wanted;
    looking = all ? 0 : PyThread_get_thread_ident();
    Py_XSETREF(paths, fresh);
    active = 1;
    Py_RETURN_NONE;
}

static PyObject *
end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    active = 0;
    PyObject *found = paths;
    paths = NULL;
    return found != NULL ? found : PyList_New(0);
}

static PyMethodDef functions[] = {
    {"install", install, METH_NOARGS, "install()\n\nAdd the hook, for good. Another hook may prevent it silently."},
    {"begin", begin, METH_VARARGS,
     "begin(most, all)\n\nRemember what this thread, or all, open for reading, up to so many."},
    {"end", end, METH_NOARGS, "end()\n\nThe paths since `begin`, as they were given."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "loaderscope.profiler.native._audit",
    .m_doc = "Which files a thread opens.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__audit(void)
{
    return PyModule_Create(&module);
}
