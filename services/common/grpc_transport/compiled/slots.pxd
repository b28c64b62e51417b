# Slots of Python objects, read and written where they lie: as the interpreter itself does, with no look-up by name.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <structmember.h>
    /* Where objects of a class have a slot; -1 and an exception where the class has none of that name. */
    static inline Py_ssize_t tandem_slot_at(PyObject* kind, const char* name) {
        PyObject* found = PyObject_GetAttrString(kind, name);
        Py_ssize_t at = -1;
        if (found == NULL) return -1;
        if (Py_IS_TYPE(found, &PyMemberDescr_Type) && ((PyMemberDescrObject*)found)->d_member->type == T_OBJECT_EX)
            at = ((PyMemberDescrObject*)found)->d_member->offset;
        else
            PyErr_Format(PyExc_TypeError, "%s of %R is no slot", name, kind);
        Py_DECREF(found);
        return at;
    }
    /* What lies in a slot, borrowed; NULL: nothing. */
    static inline PyObject* tandem_slot(PyObject* of, Py_ssize_t at) {
        return *(PyObject**)((char*)of + at);
    }
    /* Put something there: -1 and an exception where there is nothing to put, since it could not be made. */
    static inline int tandem_fill_slot(PyObject* of, Py_ssize_t at, PyObject* with) {
        PyObject* before = tandem_slot(of, at);
        if (with == NULL) return -1;
        *(PyObject**)((char*)of + at) = with;
        Py_XDECREF(before);
        return 0;
    }
    static inline int tandem_put_in_slot(PyObject* of, Py_ssize_t at, PyObject* with) {
        Py_INCREF(with);
        return tandem_fill_slot(of, at, with);
    }
    /* Whether what lies there counts as true; -1 and an exception where it does not know. */
    static inline int tandem_slot_is_true(PyObject* of, Py_ssize_t at) {
        PyObject* found = tandem_slot(of, at);
        if (found == Py_True) return 1;
        if (found == Py_False || found == Py_None) return 0;
        if (found != NULL) return PyObject_IsTrue(found);
        PyErr_SetString(PyExc_AttributeError, "there is nothing in a slot");
        return -1;
    }
    static inline int tandem_fill_slot_long(PyObject* of, Py_ssize_t at, int64_t with) {
        return tandem_fill_slot(of, at, PyLong_FromLongLong(with));
    }
    """
    Py_ssize_t tandem_slot_at(object kind, const char* name) except -1
    PyObject* tandem_slot(object of, Py_ssize_t at) noexcept
    int tandem_put_in_slot(object of, Py_ssize_t at, object what) except -1
    int tandem_slot_is_true(object of, Py_ssize_t at) except -1
    int tandem_fill_slot_long(object of, Py_ssize_t at, int64_t number) except -1
    long long PyLong_AsLongLong(PyObject* number) except? -1

# A whole number that lies in a slot.
cdef inline int64_t number_in(object of, Py_ssize_t at) except? -1:
    return PyLong_AsLongLong(tandem_slot(of, at))

# It becomes so much more, or less.
cdef inline int add_to_slot(object of, Py_ssize_t at, int64_t more) except -1:
    return tandem_fill_slot_long(of, at, number_in(of, at) + more)
