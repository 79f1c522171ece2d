/* What the table of kernels and the runtime share. `build.py` writes the table. */
#ifndef DETMAP_RUNTIME_H
#define DETMAP_RUNTIME_H

#include <stdint.h>

/* One argument of a kernel in the form in which numba's code takes it: an array is five of them and two for each dimension. */
typedef union {
    void *pointer;
    int64_t integer;
    double number;
} slot;

enum shape { ARRAY, SCALAR, TUPLE };

/* A type. `kind` is that of numpy: b, i, u, f. The types of a tuple's fields follow it, `count` of them. */
typedef struct {
    uint8_t shape, kind, size, dimensions, writable, count;
} type;

typedef int32_t entry(const slot *arguments, void *result, void **raised);

typedef struct {
    const char *label;   /* file.function */
    const char *classes; /* of named tuples, in the order of `types`: module:name, separated by spaces */
    const type *types;   /* of the arguments */
    int arguments;
    type result; /* a number; `kind` 0: none */
    entry *run;
} kernel;

extern const kernel detmap_table[];
extern const int detmap_table_size;

#endif
