/* The optimizer plugin ABI, version 1. A plugin is a shared library that exports
 *     const GanymedeOptimizer* ganymede_optimizer_v1(void);
 * Plain C: a plugin may be built by any compiler and needs this header alone. All pointers that a call receives are
 * valid during the call only. Calls for different chunks may come from several threads at once; a plugin keeps no
 * mutable state of its own: everything that must outlive a call lies in its state slots. */
#ifndef GANYMEDE_OPTIMIZER_H
#define GANYMEDE_OPTIMIZER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANYMEDE_OPTIMIZER_ABI 1u

/* What a state slot has one value of. */
enum {
  GANYMEDE_PER_ELEMENT = 0, /* of each element of a parameter */
  GANYMEDE_PER_ROW = 1      /* of each row of a matrix; for an optimizer with update_matrix */
};

/* fp32 values, sharded like the parameters, zero at the start. */
typedef struct GanymedeStateSlot {
  const char* name;    /* "first_moment" */
  const char* meaning; /* slots of two optimizers with equal meaning and shape can be migrated: "momentum" */
  uint32_t shape;      /* GANYMEDE_PER_ELEMENT or GANYMEDE_PER_ROW */
  uint32_t reserved;   /* 0 */
} GanymedeStateSlot;

/* What holds for a hyper-parameter besides its range. */
enum {
  GANYMEDE_WHOLE_NUMBER = 1, /* no fractions: a choice, a count, a switch of 0 and 1 */
  GANYMEDE_FIXED = 2         /* may not change while a run lives */
};

/* A number that a user may set. Learning rate, weight decay and clipping are no hyper-parameters: every optimizer gets
 * them from [optimizer], in GanymedeStep. */
typedef struct GanymedeHyperParameter {
  const char* name; /* key in [optimizer.NAME] of the configuration: "beta1" */
  const char* help; /* one line for a person: "decay of the first moment" */
  double default_value, lowest, highest;
  uint32_t flags; /* GANYMEDE_WHOLE_NUMBER | GANYMEDE_FIXED, or 0: any number in the range, at any time */
  uint32_t reserved;
} GanymedeHyperParameter;

/* What one step is computed with, from its decision record. */
typedef struct GanymedeStep {
  uint32_t size; /* sizeof(GanymedeStep) of the caller */
  uint32_t hyper_count;
  uint64_t step;         /* 1 for the first update */
  double lr;             /* of this step, after warm-up and schedule */
  double weight_decay;   /* decoupled; for chunks that are `decayed` */
  double gradient_scale; /* clip factor: gradients are multiplied by it */
  const double* hyper;   /* [hyper_count], in the order of the plugin's table */
} GanymedeStep;

/* Whose rows a projection of attention has: rows_per_head neighbouring ones of each head, head after head. */
enum {
  GANYMEDE_QUERY = 1, /* of the query heads */
  GANYMEDE_KEY = 2    /* of the key heads: with grouped queries, query head h looks at h / (query_heads / key_heads) */
};

/* One run of elements of one parameter under one rule. Inputs are not changed; outputs do not alias inputs. */
typedef struct GanymedeChunk {
  uint32_t size; /* sizeof(GanymedeChunk) of the caller */
  uint32_t slots;
  uint64_t count;
  int32_t decayed; /* 1: weight decay applies */
  uint32_t reserved;
  uint64_t first;         /* element of the parameter at which the run begins, row by row */
  uint64_t rows, columns; /* of the parameter; a vector has one column */
  const float* gradient;
  const float* master;
  const float* const* state; /* [slots]; null for a per-row slot, which update_matrix gets */
  float* new_master;
  float* const* new_state; /* [slots]; null for a per-row slot */
  /* Optimizers of matrices alone. Else null. */
  float* to_orthogonalise; /* first phase: written */
  const float* orthogonal; /* second phase: what became of it */
  /* Of the step, in the order of the plugin's `reductions`: a vector each, the same on all ranks and in both phases.
   * reduction_counts: its length; 0, and then null, where the parameter has none. */
  const double* const* reductions;
  const uint32_t* reduction_counts;
  uint32_t role; /* GANYMEDE_QUERY, GANYMEDE_KEY, or 0: the projection of neither, and then the next three are 0 */
  uint32_t query_heads, key_heads; /* of its layer */
  uint32_t rows_per_head;          /* row r belongs to head r / rows_per_head, of queries or keys as `role` says */
} GanymedeChunk;

/* One whole logical matrix of one parameter, never fused with another and never a part of one. */
typedef struct GanymedeMatrix {
  uint32_t size; /* sizeof(GanymedeMatrix) of the caller */
  uint32_t slots;
  uint64_t rows, columns;
  float* orthogonal;             /* [rows][columns], orthogonalised; changed in place */
  const float* const* row_state; /* [slots], each [rows]; null for a slot that is not per row */
  float* const* new_row_state;   /* [slots], each [rows]: written; null for a slot that is not per row */
} GanymedeMatrix;

typedef struct GanymedeOptimizer {
  uint32_t abi;  /* GANYMEDE_OPTIMIZER_ABI */
  uint32_t size; /* sizeof(GanymedeOptimizer) of the plugin */
  const char* name;
  const char* version;
  uint32_t slot_count, slot_size;                       /* sizeof(GanymedeStateSlot) of the plugin */
  uint32_t hyper_parameter_count, hyper_parameter_size; /* sizeof(GanymedeHyperParameter) of the plugin */
  const GanymedeStateSlot* slots;
  const GanymedeHyperParameter* hyper_parameters;
  /* The update of one chunk. Returns 0, or another value when it cannot be computed (the step is not applied). */
  int (*update_chunk)(const GanymedeStep* step, const GanymedeChunk* chunk);
  /* Null, but for an optimizer of matrices, which has two phases a step. In the first, update_chunk writes new_state
   * and to_orthogonalise from gradient, master and state (new_master is null). The matrix [rows, columns] of which
   * this is a part is then orthogonalised as a whole by Newton-Schulz ([newton_schulz] of the configuration). In the
   * second phase, apply_chunk writes new_master from master and orthogonal (gradient, state and new_state are null).
   * Such an optimizer gets matrices only. */
  int (*apply_chunk)(const GanymedeStep* step, const GanymedeChunk* chunk);
  /* Null, or what is done with each orthogonalised matrix as a whole before apply_chunk gets its elements: changes
   * `orthogonal` and writes new_row_state. It runs on one rank, that which has the matrix; its input is kept and it may
   * be called again with the same, so it depends on nothing else. Per-row slots change here alone: in a swap that is
   * warmed up they begin when it takes effect, however old the other slots are then. Needs apply_chunk. */
  int (*update_matrix)(const GanymedeStep* step, const GanymedeMatrix* matrix);
  /* Names of what is to be known of a whole step before it is applied, each once; computed only because a plugin lists
   * it here:
   *   "attention_logit"  of a query or key projection, [query_heads]: per query head of the layer the largest scaled
   *                      logit q · k / sqrt(head size) over all tokens, micro-batches and ranks (without sinks)
   *   "gradient_square"  of every parameter, [1]: the sum of the squares of its gradient, before clipping, in fp64
   * A step in which one of them is not finite is not applied. */
  uint32_t reduction_count;
  const char* const* reductions;
} GanymedeOptimizer;

/* This header is C too, where () would take anything. NOLINTNEXTLINE(modernize-redundant-void-arg) */
typedef const GanymedeOptimizer* (*GanymedeOptimizerEntry)(void);

#ifdef __cplusplus
}
#endif

#endif
