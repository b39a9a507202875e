/* Starting a process that is nobody's child: no SIGCHLD, and nothing for any wait() of this process to find.
 *
 * A go-between is made by clone() with no signal for its end, which plain waits pass over (wait(2), "clone children"). It
 * starts the program by vfork and exec, in a session of its own. Then it ends, and the program is adopted by whoever
 * adopts orphans here. Where that would be this very process (process 1 of a container, a subreaper), the go-between stays
 * as the program's parent until one of the two ends.
 *
 * The go-between shares this process's memory, as vfork's children do, and makes system calls only, without errno: no
 * memory is copied, no lock of this process is met. It must therefore not outlive this process's memory use: it ends with
 * this process, which it watches by a descriptor.
 */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define CAN_SPAWN 1
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* The stack's guard lies in memory of the calling thread, which may end before the go-between does. */
#if defined(__has_attribute) && __has_attribute(no_stack_protector)
#define UNGUARDED no_stack_protector,
#else
#define UNGUARDED
#endif
#define BARE __attribute__((UNGUARDED noinline, no_sanitize("address"), no_sanitize("undefined")))

enum { STACK_BYTES = 64 << 10, MOST_FDS = 1 << 16 };

typedef struct {
    char **argv, **envp;
    int keep_fd;   /* becomes descriptor 3 of the program; -1: none */
    int stays;     /* the go-between stays as its parent */
    char *stack;   /* of the program's side until exec */
    sigset_t none; /* signals it starts with blocked: none */
    volatile int pid, error;
} Plan;

static BARE long
call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#endif
}

static BARE void
close_from(long first)
{
    if (call(SYS_close_range, first, ~0U, 0, 0) < 0) {
        for (long fd = first; fd < MOST_FDS; fd++) {
            call(SYS_close, fd, 0, 0, 0);
        }
    }
}

static BARE int
program(void *argument)
{
    Plan *plan = argument;
    static const char root[] = "/", null[] = "/dev/null";
    call(SYS_chdir, (long)root, 0, 0, 0);
    /* Above the numbers that are given out below, so that none of those closes it. */
    long kept = plan->keep_fd < 0 ? -1 : call(SYS_fcntl, plan->keep_fd, F_DUPFD, 10, 0);
    long nothing = call(SYS_openat, AT_FDCWD, (long)null, O_RDWR, 0);
    for (long fd = 0; fd < 3; fd++) {
        if (nothing != fd) {
            call(SYS_dup3, nothing, fd, 0, 0);
        }
    }
    if (kept >= 0) {
        call(SYS_dup3, kept, 3, 0, 0);
    }
    close_from(kept >= 0 ? 4 : 3);
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&plan->none, 0, _NSIG / 8);
    long failed = call(SYS_execve, (long)plan->argv[0], (long)plan->argv, (long)plan->envp, 0);
    plan->error = (int)-failed;
    call(SYS_exit_group, 127, 0, 0, 0);
    return 0;
}

static BARE long
begin(int (*function)(void *), char *stack, long flags, Plan *plan)
{
    return clone(function, stack + STACK_BYTES, (int)flags, plan);
}

static BARE void
stay(long parent, long child)
{
    struct pollfd ends[2] = {
        {.fd = (int)call(SYS_pidfd_open, parent, 0, 0, 0), .events = POLLIN},
        {.fd = (int)call(SYS_pidfd_open, child, 0, 0, 0), .events = POLLIN},
    };
    long self = call(SYS_getpid, 0, 0, 0, 0);
    while (ends[0].fd >= 0 && ends[1].fd >= 0) { /* before Linux 5.3 the program sees the caller's end by itself */
        struct timespec second = {1, 0};
        call(SYS_ppoll, (long)ends, 2, (long)&second, 0);
        if (ends[0].revents || call(SYS_getppid, 0, 0, 0, 0) != parent) {
            return;
        }
        if (ends[1].revents) {
            break;
        }
        if (call(SYS_kcmp, parent, self, KCMP_VM, 0) > 0) { /* the caller runs another program: free what it left */
            call(SYS_kill, child, SIGTERM, 0, 0);
            break;
        }
    }
    call(SYS_wait4, child, 0, 0, 0); /* nobody else may come to adopt it */
}

static BARE int
go_between(void *argument)
{
    Plan *plan = argument;
    static const char title[] = "loaderscope";
    long parent = call(SYS_getppid, 0, 0, 0, 0);
    call(SYS_setsid, 0, 0, 0, 0);
    /* errno is this thread's and may be set by clone() here: the caller waits until the program is on its way. */
    long child = begin(program, plan->stack, CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
    int stays = plan->stays && child > 0 && plan->error == 0;
    if (child > 0 && plan->error != 0) {
        call(SYS_wait4, child, 0, 0, 0);
        child = -1;
    }
    if (stays) {
        call(SYS_prctl, PR_SET_NAME, (long)title, 0, 0);
        call(SYS_chdir, (long)"/", 0, 0, 0);
        close_from(0);
    }
    __atomic_store_n(&plan->pid, child > 0 ? (int)child : -1, __ATOMIC_RELEASE);
    if (stays) {
        /* From here on the caller goes on, and frees the plan: nothing of it is touched again. */
        stay(parent, child);
    }
    call(SYS_exit_group, 0, 0, 0, 0);
    return 0;
}

/* The last go-between that stayed; reaped when the next is made. */
static pid_t stayed;

/* Called without the GIL. Returns the program's id; -1 with `*error` set. */
static int
start(Plan *plan, int *error)
{
    sigset_t all, before;
    size_t size = 2 * STACK_BYTES;
    char *stacks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        *error = errno;
        return -1;
    }
    plan->stack = stacks + STACK_BYTES;
    sigfillset(&all);
    sigemptyset(&plan->none);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* a handler of this process must not run in the other */
    long between = begin(go_between, stacks, CLONE_VM | (plan->stays ? 0 : CLONE_VFORK), plan);
    *error = between < 0 ? errno : 0;
    if (between > 0) {
        int pid;
        while ((pid = __atomic_load_n(&plan->pid, __ATOMIC_ACQUIRE)) == 0) {
            struct timespec pause = {0, 100000};
            nanosleep(&pause, NULL);
        }
        if (stayed > 0 && waitpid(stayed, NULL, __WCLONE | WNOHANG) != 0) {
            stayed = 0;
        }
        if (pid > 0 && plan->stays) {
            stayed = (pid_t)between; /* which keeps its stack */
        }
        else { /* only a wait that asks for it by name and kind finds it */
            while (waitpid((pid_t)between, NULL, __WCLONE) < 0 && errno == EINTR) {
            }
            munmap(stacks, size);
        }
        if (pid < 0 || plan->error != 0) {
            *error = plan->error ? plan->error : EAGAIN;
        }
    }
    else {
        munmap(stacks, size);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return *error ? -1 : plan->pid;
}

static char **
strings(PyObject *sequence)
{
    Py_ssize_t n = PyTuple_GET_SIZE(sequence);
    char **list = PyMem_Calloc((size_t)n + 1, sizeof *list);
    if (list == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(sequence, i), &list[i], NULL) < 0) { /* no zero byte within */
            PyMem_Free(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *
spawn(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *argv, *environment;
    Plan plan = {.keep_fd = -1};
    if (!PyArg_ParseTuple(args, "O!O!ip", &PyTuple_Type, &argv, &PyTuple_Type, &environment, &plan.keep_fd, &plan.stays)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(argv) == 0) {
        PyErr_SetString(PyExc_ValueError, "nothing to start");
        return NULL;
    }
    int pid = -1, error = 0;
    plan.argv = strings(argv);
    plan.envp = plan.argv == NULL ? NULL : strings(environment);
    if (plan.envp != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        pid = start(&plan, &error);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(plan.argv);
    PyMem_Free(plan.envp);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (pid < 0) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromLong(pid);
}

static PyObject *
adopts_orphans(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    int subreaper = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0);
    return PyBool_FromLong(getpid() == 1 || subreaper);
}

static PyMethodDef methods[] = {
    {"spawn", spawn, METH_VARARGS,
     "spawn(argv, environment, keep_fd, stays) -> pid\n\nTuples of bytes; `keep_fd` becomes descriptor 3 (-1: none). "
     "Raises OSError."},
    {"adopts_orphans", adopts_orphans, METH_NOARGS, "Whether orphaned descendants become children of this process."},
    {NULL, NULL, 0, NULL},
};
#else
static PyMethodDef methods[] = {{NULL, NULL, 0, NULL}};
#endif

/* Or a Python without a GIL would turn it on for this module, and warn. What is global here is used without it too. */
static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_spawn",
    .m_doc = "Starting a process that is nobody's child.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__spawn(void)
{
    return PyModuleDef_Init(&definition);
}
