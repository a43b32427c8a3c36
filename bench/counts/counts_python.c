/* What counts.py calls its operations by: for callgrind they need a symbol each. */

struct _object;
extern struct _object *PyObject_CallNoArgs(struct _object *);
extern void Py_DecRef(struct _object *);

/* In two steps: that libffi, which calls for ctypes, enters a function is not seen by callgrind. */
#define CALLED(name)                                                                                          \
  __attribute__((noinline, used)) void counted_##name(struct _object *operation) {                            \
    Py_DecRef(PyObject_CallNoArgs(operation));                                                                \
    __asm__ volatile(""); /* no tail call */                                                                  \
  }                                                                                                           \
  void call_##name(struct _object *operation) {                                                               \
    counted_##name(operation);                                                                                \
    __asm__ volatile("");                                                                                     \
  }

CALLED(publish_copy)
CALLED(publish_copy_take)
CALLED(loan_publish)
CALLED(loan_publish_take)
CALLED(wait_set_turn)
CALLED(executor_turn)
CALLED(callback)
CALLED(service_call)
CALLED(wake)
