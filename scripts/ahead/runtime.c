/* The runtime of kernels that numba compiled ahead of time: its allocator, and calls from Python.

   Nothing here is linked with Python: the functions of its stable C API are handed over once, as pointers, by
   `detmap/kernels/_ahead.py`, so that one object serves every version of Python. A call checks the kind, dimensions, layout and
   writability of every argument before machine code sees it. */

#include "runtime.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* ---- the allocator of numba's code ---------------------------------------------------------------------------------- */

typedef struct {
    size_t references; /* changed by numba's code, which knows this field and `data` by their places */
    void (*destroy)(void *, size_t, void *);
    void *destroy_info;
    void *data;
    size_t size;
    void *external;
} memory;

static long allocations_left = -1; /* tests: allocations until one fails; negative: none is made to fail */

EXPORT void detmap_fail_after(long count) { allocations_left = count; }

static void *take(size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0)
        return NULL;
    return malloc(size ? size : 1);
}

void *NRT_Allocate(size_t size) { return take(size); }

void NRT_Free(void *data) { free(data); }

memory *NRT_MemInfo_alloc_aligned(size_t size, unsigned align) {
    memory *made;
    if (size > SIZE_MAX / 2 || !(made = take(sizeof(memory) + size + align)))
        return NULL;
    uintptr_t data = (uintptr_t)(made + 1);
    memset(made, 0, sizeof(memory));
    made->references = 1;
    made->data = (void *)((data + align - 1) / align * align);
    made->size = size;
    return made;
}

memory *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

static void free_varying(void *data, size_t size, void *destroy) {
    (void)size;
    if (destroy)
        ((void (*)(void *))destroy)(data);
    free(data);
}

/* Memory of a list, which grows by being replaced. */
memory *NRT_MemInfo_new_varsize_dtor(size_t size, void *destroy) {
    void *data = take(size);
    memory *made = data ? NRT_MemInfo_alloc_aligned(0, 16) : NULL;
    if (!made) {
        free(data);
        return NULL;
    }
    made->destroy = free_varying;
    made->destroy_info = destroy;
    made->data = data;
    made->size = size;
    return made;
}

void NRT_MemInfo_call_dtor(memory *held) {
    if (held->destroy)
        held->destroy(held->data, held->size, held->destroy_info);
    free(held);
}

/* numpy's attempt to reshape without a copy, for contiguous arrays, the only ones that kernels take and make. */
int numba_attempt_nocopy_reshape(intptr_t count, const intptr_t *shape, const intptr_t *strides, intptr_t new_count,
                                 const intptr_t *new_shape, intptr_t *new_strides, intptr_t size, int columns) {
    intptr_t step = size;
    if (columns)
        return 0;
    for (intptr_t i = count - 1; i >= 0; step *= shape[i--])
        if (shape[i] != 1 && strides[i] != step)
            return 0;
    step = size;
    for (intptr_t i = new_count - 1; i >= 0; step *= new_shape[i--])
        new_strides[i] = step;
    return 1;
}

/* ---- the processor -------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <cpuid.h>

/* The highest level of x86-64, 1 to 4, whose instructions this processor and its system offer; 4 is with VPOPCNTDQ. */
EXPORT int detmap_level(void) {
    unsigned a, b, c, d, extended_c = 0, seven_b = 0, seven_c = 0, low = 0, high = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 1;
    const unsigned second = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23; /* SSE3 … SSE4.2, CX16, POPCNT */
    const unsigned third = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29; /* FMA, MOVBE, OSXSAVE, AVX, F16C */
    unsigned first_c = c;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d))
        extended_c = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        seven_b = b, seven_c = c;
    if ((first_c & second) != second || !(extended_c & 1u)) /* LAHF */
        return 1;
    if ((first_c & third) != third || !(extended_c & 1u << 5)) /* LZCNT */
        return 2;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    const unsigned vectors = 1u << 3 | 1u << 5 | 1u << 8; /* BMI1, AVX2, BMI2 */
    if ((seven_b & vectors) != vectors || (low & 6u) != 6u)
        return 2;
    const unsigned wide = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* AVX-512 F, DQ, CD, BW, VL */
    return (seven_b & wide) == wide && seven_c & 1u << 14 && (low & 0xe6u) == 0xe6u ? 4 : 3;
}
#else
EXPORT int detmap_level(void) { return 1; }
#endif

/* ---- calls from Python ---------------------------------------------------------------------------------------------- */

typedef void object;
typedef intptr_t length;

/* `Py_buffer`, the same since Python 3.0. */
typedef struct {
    void *data;
    object *owner;
    length bytes, item;
    int readonly, dimensions;
    char *format;
    length *shape, *strides, *suboffsets;
    void *internal;
} buffer;

enum { FORMAT = 0x4, STRIDES = 0x10 | 0x8, WRITABLE = 0x1 }; /* flags of PyObject_GetBuffer */

typedef struct {
    const char *name;
    object *(*function)(object *, object *const *, length);
    int flags;
    const char *text;
} method;

enum { FASTCALL = 0x80 };

/* Functions and objects of Python and numpy, in the order of `_ahead.py`. */
static struct {
    int (*get_buffer)(object *, buffer *, int);
    void (*release_buffer)(buffer *);
    length (*tuple_size)(object *);
    object *(*tuple_item)(object *, length);
    object *(*type_of)(object *);
    int (*is_instance)(object *, object *);
    object *(*index)(object *);
    long long (*as_integer)(object *);
    unsigned long long (*as_natural)(object *);
    double (*as_number)(object *);
    int (*is_true)(object *);
    object *(*integer)(long long);
    object *(*natural)(unsigned long long);
    object *(*number)(double);
    object *(*truth)(long);
    object *(*capsule)(void *, const char *, void (*)(object *));
    void *(*pointer)(object *, const char *);
    object *(*function)(method *, object *, object *);
    void (*keep)(object *);
    void (*drop)(object *);
    object *(*error)(void);
    int (*error_is)(object *);
    void (*clear)(void);
    void (*raise)(object *, const char *);
    void *(*release_lock)(void);
    void (*take_lock)(void *);
} python;

static struct {
    object *none, *yes, *no, *integer, *number, *truth_of_numpy, *integer_of_numpy;
    object *memory_error, *runtime_error, *mismatch;
} known;

EXPORT void detmap_start(const void *const *functions, object *const *objects) {
    memcpy(&python, functions, sizeof python);
    memcpy(&known, objects, sizeof known);
    for (size_t i = 0; i < sizeof known / sizeof(object *); i++)
        python.keep(((object **)&known)[i]);
}

EXPORT int detmap_functions(void) { return sizeof python / sizeof(void *); }

EXPORT int detmap_objects(void) { return sizeof known / sizeof(object *); }

/* A checksum of the functions' names in their order: `interface` in `_ahead.py`. */
EXPORT int detmap_interface(void) { return DETMAP_INTERFACE; }

enum { MOST_SLOTS = 512, MOST_BUFFERS = 64, MOST_CLASSES = 16 };

/* A kernel that Python calls. It lives as long as the process. */
typedef struct {
    const kernel *of;
    object *classes[MOST_CLASSES];
    method definition;
} callable;

typedef struct {
    slot slots[MOST_SLOTS];
    buffer buffers[MOST_BUFFERS];
    int slot_count, buffer_count;
    object *const *classes;
    const char *problem; /* what does not fit, None where Python has raised an error */
    const type *wanted;
} call;

static int refuse(call *this, const type *wanted, const char *problem) {
    this->problem = problem;
    this->wanted = wanted;
    return 0;
}

/* Whether the letter of a buffer's format is of that kind; the size is compared by itself. */
static int is_kind(const char *format, char kind) {
    static const char *const letters[] = {"b?", "ibhilq", "uBHILQ", "fdf"};
    if (!format)
        format = "B";
    if (*format == '@')
        format++;
    for (size_t i = 0; i < 4; i++)
        if (letters[i][0] == kind)
            return *format && strchr(letters[i] + 1, *format) && !format[1];
    return 0;
}

static int take_array(call *this, const type *wanted, object *given) {
    buffer *view = &this->buffers[this->buffer_count];
    slot *out = &this->slots[this->slot_count];
    if (python.get_buffer(given, view, FORMAT | STRIDES)) {
        if (python.error_is(known.memory_error))
            return 0;
        python.clear();
        return refuse(this, wanted, "is no array");
    }
    this->buffer_count++;
    if (view->dimensions != wanted->dimensions)
        return refuse(this, wanted, "has other dimensions");
    if (view->item != wanted->size || !is_kind(view->format, wanted->kind))
        return refuse(this, wanted, "has another dtype");
    if (wanted->writable && view->readonly)
        return refuse(this, wanted, "is read-only");
    length step = view->item, items = 1;
    for (int i = 0; i < view->dimensions; i++)
        if (__builtin_mul_overflow(items, view->shape[i], &items))
            return refuse(this, wanted, "is too large");
    int n = view->dimensions;
    for (int i = n - 1; i >= 0; step *= view->shape[i--]) {
        if (items && view->shape[i] != 1 && view->strides[i] != step)
            return refuse(this, wanted, "is not C-contiguous");
        out[5 + i].integer = view->shape[i];
        out[5 + n + i].integer = step;
    }
    if (items && (uintptr_t)view->data % wanted->size)
        return refuse(this, wanted, "is not aligned");
    out[0].pointer = out[1].pointer = NULL; /* the caller holds the memory, numba's code does not count references */
    out[2].integer = items;
    out[3].integer = view->item;
    out[4].pointer = view->data;
    this->slot_count += 5 + 2 * n;
    return 1;
}

static int is_integer(object *given) {
    return given != known.yes && given != known.no &&
           (python.is_instance(given, known.integer) == 1 || python.is_instance(given, known.integer_of_numpy) == 1);
}

static int take_scalar(call *this, const type *wanted, object *given) {
    slot *out = &this->slots[this->slot_count++];
    out->pointer = NULL;
    if (wanted->kind == 'f') {
        if (python.is_instance(given, known.number) != 1)
            return refuse(this, wanted, "is no float");
        out->number = python.as_number(given);
    } else if (wanted->kind == 'b') {
        if (given != known.yes && given != known.no && python.is_instance(given, known.truth_of_numpy) != 1)
            return refuse(this, wanted, "is no bool");
        out->integer = python.is_true(given);
    } else {
        if (!is_integer(given))
            return refuse(this, wanted, "is no integer");
        object *index = python.index(given);
        if (!index)
            return 0;
        if (wanted->kind == 'u')
            out->integer = (int64_t)python.as_natural(index);
        else
            out->integer = python.as_integer(index);
        python.drop(index);
        if (python.error()) {
            python.clear();
            return refuse(this, wanted, "is out of range");
        }
    }
    return !python.error();
}

static const type *take_argument(call *, const type *, object *);

static const type *take_tuple(call *this, const type *wanted, object *given) {
    object *class = python.type_of(given);
    if (!class)
        return NULL;
    python.drop(class); /* the object holds it */
    if (class != *this->classes++ || python.tuple_size(given) != wanted->count) {
        if (python.error())
            python.clear();
        refuse(this, wanted, "is another tuple");
        return NULL;
    }
    const type *field = wanted + 1;
    for (int i = 0; i < wanted->count && field; i++) {
        object *value = python.tuple_item(given, i);
        field = value ? take_argument(this, field, value) : NULL;
    }
    return field;
}

/* Take one argument; return the type behind its own, NULL where it does not fit. */
static const type *take_argument(call *this, const type *wanted, object *given) {
    if (wanted->shape == TUPLE)
        return take_tuple(this, wanted, given);
    if (wanted->shape == ARRAY)
        return take_array(this, wanted, given) ? wanted + 1 : NULL;
    return take_scalar(this, wanted, given) ? wanted + 1 : NULL;
}

static void say_mismatch(const call *this, int position) {
    char text[160], form[40];
    const type *wanted = this->wanted;
    const char *kind = wanted->kind == 'b' ? "bool" : wanted->kind == 'f' ? "float" : wanted->kind == 'u' ? "uint" : "int";
    if (wanted->kind == 'b')
        snprintf(form, sizeof form, "%s", kind);
    else
        snprintf(form, sizeof form, "%s%d", kind, 8 * wanted->size);
    if (wanted->shape == ARRAY)
        snprintf(text, sizeof text, "%d %s; a%s C-contiguous array of %s with %d dimension%s is needed", position, this->problem,
                 wanted->writable ? " writable" : "", form, wanted->dimensions, wanted->dimensions == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "%d %s; %s is needed", position, this->problem,
                 wanted->shape == TUPLE ? "the kernel's named tuple" : form);
    python.raise(known.mismatch, text);
}

/* numba's code raises by leaving the pickled class and arguments; the name of the class stands in it as it is. */
static void say_failure(const kernel *of, int32_t status, void *raised) {
    struct {
        const char *pickled;
        int32_t size;
        void *digest, *unwrap;
        int32_t on_heap;
    } *cause = raised;
    static const char *const signs[] = {"MemoryError", "array is too big"};
    char text[200];
    int memory_lacks = 0;
    for (int which = 0; status > 0 && cause && which < 2; which++) {
        int32_t size = (int32_t)strlen(signs[which]);
        for (int32_t at = 0; at + size <= cause->size; at++)
            memory_lacks |= !memcmp(cause->pickled + at, signs[which], size);
    }
    if (memory_lacks)
        snprintf(text, sizeof text, "kernel %s: an allocation failed", of->label);
    else
        snprintf(text, sizeof text, "kernel %s failed with status %d", of->label, (int)status);
    python.raise(memory_lacks ? known.memory_error : known.runtime_error, text);
}

static object *result_of(const kernel *of, const slot *result) {
    switch (of->result.kind) {
    case 'i':
        return python.integer(result->integer);
    case 'u':
        return python.natural((unsigned long long)result->integer);
    case 'f':
        return python.number(result->number);
    case 'b':
        return python.truth(result->integer & 1);
    }
    python.keep(known.none);
    return known.none;
}

static object *run(object *self, object *const *given, length count) {
    const callable *called = python.pointer(self, "detmap.kernel");
    if (!called)
        return NULL;
    const kernel *of = called->of;
    call this;
    this.slot_count = this.buffer_count = 0;
    this.classes = called->classes;
    this.problem = NULL;
    slot result;
    void *raised = NULL, *thread;
    object *made = NULL;
    int32_t status;
    const type *wanted = of->types;
    int i = 0;
    if (count != of->arguments) {
        char text[60];
        snprintf(text, sizeof text, "%d is the number of arguments that are needed", of->arguments);
        python.raise(known.mismatch, text);
        return NULL;
    }
    for (; i < count && wanted; i++)
        wanted = take_argument(&this, wanted, given[i]);
    if (!wanted) {
        if (this.problem)
            say_mismatch(&this, i);
        else if (!python.error())
            python.raise(known.runtime_error, "a kernel's argument was not understood");
        goto end;
    }
    memset(&result, 0, sizeof result);
    thread = python.release_lock();
    status = of->run(this.slots, &result, &raised);
    python.take_lock(thread);
    if (status > 0 || status == -1 || status < -2)
        say_failure(of, status, raised);
    else
        made = result_of(of, &result);
end:
    for (i = 0; i < this.buffer_count; i++)
        python.release_buffer(&this.buffers[i]);
    return made;
}

/* The number of the kernel of that label, -1 where there is none. */
EXPORT int detmap_find(const char *label) {
    for (int i = 0; i < detmap_table_size; i++)
        if (!strcmp(detmap_table[i].label, label))
            return i;
    return -1;
}

EXPORT const char *detmap_label(int number) {
    return number >= 0 && number < detmap_table_size ? detmap_table[number].label : NULL;
}

EXPORT const char *detmap_classes(int number) { return detmap_table[number].classes; }

EXPORT const type *detmap_types(int number) { return detmap_table[number].types; }

EXPORT int detmap_arguments(int number) { return detmap_table[number].arguments; }

/* A function of Python that calls a kernel. The classes of its named tuples are kept. */
EXPORT object *detmap_function(int number, object *const *classes, int count) {
    callable *made = calloc(1, sizeof *made);
    if (!made || count > MOST_CLASSES) {
        free(made);
        python.raise(known.memory_error, "no memory for a kernel");
        return NULL;
    }
    made->of = &detmap_table[number];
    for (int i = 0; i < count; i++)
        python.keep(made->classes[i] = classes[i]);
    made->definition = (method){made->of->label, run, FASTCALL, NULL};
    object *self = python.capsule(made, "detmap.kernel", NULL);
    object *function = self ? python.function(&made->definition, self, NULL) : NULL;
    if (self)
        python.drop(self);
    return function;
}
