#ifndef QUALIFY_TRACER_TRACER_H
#define QUALIFY_TRACER_TRACER_H

#include <stddef.h>
#include <stdint.h>

/* Records what one rank computes, for a training program in any language: a C ABI, one object a
 * rank, used by one thread at a time, sharing no code with what judges the traces.
 *
 * Writes FOLDER/rank_%06d.jsonl in the public schema trace-pr6610 (docs/formats/traces.md), at the
 * level of a capture plan (docs/formats/capture-plan.md): L0 a digest of samples for each phase,
 * kind and class of collectives, and every metric; L1 a device digest (E3) of every value; L2
 * SHA-256 (E4) of every value. Values lie in host memory, dense, in logical order. */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct qtrace qtrace;

enum qtrace_level { QTRACE_L0, QTRACE_L1, QTRACE_L2 };
enum qtrace_kind {
  QTRACE_METRIC,
  QTRACE_PHASE,
  QTRACE_COLLECTIVE,
  QTRACE_P2P,
  QTRACE_TENSOR,
  QTRACE_STATE,
  QTRACE_RNG,
  QTRACE_DATA,
  QTRACE_CONTROL
};
enum qtrace_role { QTRACE_NO_ROLE, QTRACE_INPUT, QTRACE_OUTPUT, QTRACE_SEND, QTRACE_RECV };
enum qtrace_dtype {
  QTRACE_FLOAT32,
  QTRACE_FLOAT64,
  QTRACE_FLOAT16,
  QTRACE_BFLOAT16,
  QTRACE_INT32,
  QTRACE_INT64,
  QTRACE_UINT8
};

typedef struct qtrace_options {
  enum qtrace_level level; /* where there is no plan */
  const char* plan_file;   /* a capture plan, or NULL */
  int times;               /* not 0: each record has time_ns, of a monotonic clock */
} qtrace_options;

/* Where in training. */
typedef struct qtrace_where {
  int64_t iteration;  /* never less than the one before */
  int64_t microbatch; /* -1: none */
  const char* phase;
} qtrace_where;

/* What was computed or passed on. */
typedef struct qtrace_value {
  const char* name; /* module path */
  enum qtrace_kind kind;
  enum qtrace_role role;
  enum qtrace_dtype dtype;
  const void* data;
  const int64_t* shape;
  size_t dims;       /* 0: one scalar */
  const char* op;    /* of a collective or send: "all-reduce"; or NULL */
  const char* group; /* name in the manifest, or NULL */
  int64_t group_seq; /* number of the operation in its group, or -1 */
  int64_t peer;      /* rank that is sent to or received from, or -1 */
} qtrace_value;

/* NULL, and a text in `error`, where the file is there already or cannot be written, or the plan
 * cannot be read. */
qtrace* qtrace_open(const char* folder, int64_t rank, const qtrace_options* options, char* error,
                    size_t error_size);
/* Ends the file; 0, or -1 where something was not written. NULL is allowed. */
int qtrace_close(qtrace* trace);
/* Hands everything to the operating system; 0 or -1. What failed before is told here, too. */
int qtrace_flush(qtrace* trace);
/* What failed first; "" where nothing did. */
const char* qtrace_error(const qtrace* trace);

/* The level in force there: what is not wanted need not be made ready. */
enum qtrace_level qtrace_level_at(const qtrace* trace, const qtrace_where* where, const char* name);
/* Something happened. */
void qtrace_event(qtrace* trace, const qtrace_where* where, const char* name,
                  enum qtrace_kind kind);
/* A metric that is no tensor. */
void qtrace_count(qtrace* trace, const qtrace_where* where, const char* name, int64_t value);
void qtrace_number(qtrace* trace, const qtrace_where* where, const char* name, double value);
void qtrace_record(qtrace* trace, const qtrace_where* where, const qtrace_value* value);

typedef struct qtrace_group {
  const char* name;
  const int64_t* ranks; /* in the order of the group */
  size_t size;
} qtrace_group;
typedef struct qtrace_manifest {
  int64_t world_size;
  int64_t resumed_from;     /* iteration of the checkpoint, or -1 */
  const char* const* names; /* of "model", "data", "seed", "code", "container", "environment" */
  const char* const* values;
  size_t inputs;
  const qtrace_group* groups;
  size_t group_count;
} qtrace_manifest;
/* FOLDER/manifest.json, by one rank. 0, or -1 with a text in `error`. */
int qtrace_write_manifest(const char* folder, const qtrace_manifest* manifest,
                          const qtrace_options* options, char* error, size_t error_size);

/* The digests themselves, for those who check. Sizes are the elements' own; `lanes` gets 2 words.
 * E3: sum over i of mix64(bits_i XOR (i + 1) * K) mod 2^64 for two K, begun with type and shape:
 * whatever the order of summation, and position-sensitive. Returns the same without positions:
 * the sum of mix64(bits_i). mix64 is splitmix64's finaliser. */
uint64_t qtrace_device_digest(enum qtrace_dtype dtype, const void* data, const int64_t* shape,
                              size_t dims, uint64_t lanes[2]);
/* E2: at most 64 elements at equal distances. */
void qtrace_sample_digest(enum qtrace_dtype dtype, const void* data, const int64_t* shape,
                          size_t dims, uint64_t lanes[2]);

#ifdef __cplusplus
}
#endif

#endif
