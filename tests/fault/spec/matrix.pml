/* The update of a whole matrix whose rows lie on RANKS ranks: two counted phases in each optimizer server with an
 * exchange of the workers between them (rules 14, 15).
 *
 * Phase 1 computes momentum from the gradients, a worker sends it, every worker orthogonalises the matrix that it has
 * together, and phase 2 writes the weights. All values are the step that they belong to. Steps are decided here when all
 * ranks have committed the one before (step.pml). A kill takes a worker or a server after any store; a worker's
 * kill takes what it has sent. -DWITHOUT_RULE_n switches a rule off. */

#ifndef RANKS
#define RANKS 2
#endif
#ifndef STEPS
#define STEPS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif

typedef Cell {
  byte phases;                              /* counted: step * 2, + 1 after phase 1 */
  byte momentum[2], weights[2];             /* halves */
  byte returned[2], returned_step;          /* the orthogonalised rows, in shared memory */
  byte sent_step[2], sent[2];               /* by step % 2: a step and no generation; 0 after the worker's end */
  byte generation;                          /* that its worker is in */
  byte slot_committed, slot_decided;        /* of its exchange */
  bool worker_lives, server_lives
};
Cell cell[RANKS];
byte generation, decided, faults = FAULTS;

#define committed(r) (cell[r].phases / 2)
#if RANKS == 2
#define all_committed(s) (committed(0) >= (s) && committed(1) >= (s))
#define all_joined (cell[0].generation == mine && cell[1].generation == mine)
#define all_sent (cell[0].sent_step[step % 2] == step && cell[1].sent_step[step % 2] == step)
#else
#define all_committed(s) (committed(0) >= (s) && committed(1) >= (s) && committed(2) >= (s))
#define all_joined (cell[0].generation == mine && cell[1].generation == mine && cell[2].generation == mine)
#define all_sent (cell[0].sent_step[step % 2] == step && cell[1].sent_step[step % 2] == step && cell[2].sent_step[step % 2] == step)
#endif

/* What a rank sends is a function of the momentum that phase 1 has stored, so it is the same whenever it is served. */
inline send() {
#ifndef WITHOUT_RULE_14_PHASE
  cell[rank].phases >= step * 2 - 1;
#endif
  d_step {
#ifdef WITHOUT_RULE_15
    cell[rank].sent[step % 2] = cell[rank].weights[0] + 1;                       /* of weights, which phase 2 is writing */
    assert(cell[rank].weights[0] == cell[rank].weights[1]);
#else
    cell[rank].sent[step % 2] = cell[rank].momentum[0];
    assert(cell[rank].momentum[0] == cell[rank].momentum[1]);
#endif
    cell[rank].sent_step[step % 2] = step
  }
}

inline orthogonalise() {
  d_step {
    all_sent -> peer = 0;
    do
    :: peer == RANKS -> break
    :: else -> assert(cell[peer].sent[step % 2] == step); peer++
    od;
    peer = 0
  }
  if
  :: cell[rank].returned_step == step                                  /* served for the others alone */
  :: else ->
#ifdef WITHOUT_RULE_14_RETURNED
     cell[rank].returned_step = step;
#endif
     cell[rank].returned[0] = step;
     cell[rank].returned[1] = step;
     cell[rank].returned_step = step
  fi
}

proctype Worker(byte rank) {
  byte mine, step, peer;
  bool behind;
again:
  skip;
  d_step { mine = 0; step = 0; peer = 0; behind = false }
  cell[rank].worker_lives;
  {
    d_step {
      generation > cell[rank].generation -> mine = generation; cell[rank].generation = mine;
      cell[rank].slot_committed = committed(rank); cell[rank].slot_decided = decided
    }
    d_step {                                                           /* the exchange: the same for all */
      all_joined -> peer = 0; step = 0; behind = false;
      do
      :: peer == RANKS -> break
      :: else -> step = (cell[peer].slot_decided > step -> cell[peer].slot_decided : step); peer++
      od;
      do
      :: peer == 0 -> break
      :: else -> peer--; behind = behind || cell[peer].slot_committed < step
      od
    }
    if
    :: behind ->                             /* a rank may still need the others' rows */
       if
#ifdef WITHOUT_RULE_14_SERVED
       :: committed(rank) >= step
#endif
       :: committed(rank) < step || cell[rank].phases >= 0 -> send(); orthogonalise()
       fi
    :: else
    fi;
    behind = false;
    step++;
    do
    :: step > STEPS -> break
    :: else ->
       all_committed(step - 1);                                        /* gathers, then the vote */
       if
       :: decided < step -> decided = step
       :: else
       fi;
       send(); orthogonalise();
       step++
    od;
    false                                                              /* it leaves when all have committed */
  } unless {
    all_committed(STEPS) || !cell[rank].worker_lives || generation > mine && mine != 0;
    d_step { cell[rank].sent_step[0] = 0; cell[rank].sent_step[1] = 0; cell[rank].sent[0] = 0; cell[rank].sent[1] = 0 }
    if
    :: all_committed(STEPS)
    :: else -> goto again
    fi
  }
}

proctype Server(byte rank) {
  byte step;
again:
  step = 0;
  cell[rank].server_lives = true;
  {
end_server:
    do
    :: cell[rank].phases % 2 == 0 && decided > committed(rank) ->
       step = committed(rank) + 1;
       cell[rank].momentum[0] = step;
       cell[rank].momentum[1] = step;
       cell[rank].phases++;
       step = 0
    :: cell[rank].phases % 2 == 1 && cell[rank].returned_step == committed(rank) + 1 ->
       step = committed(rank) + 1;
       d_step { assert(cell[rank].returned[0] == step); cell[rank].weights[0] = step }
       d_step { assert(cell[rank].returned[1] == step); cell[rank].weights[1] = step }
       cell[rank].phases++;
       step = 0
    od
  } unless { !cell[rank].server_lives; goto again }
}

proctype Watch(byte rank) {
end_watch:
  do
  :: atomic { faults > 0 && cell[rank].worker_lives && !all_committed(STEPS) -> faults--; cell[rank].worker_lives = false }
  :: atomic { faults > 0 && cell[rank].server_lives -> faults--; cell[rank].server_lives = false }
  :: !cell[rank].worker_lives && cell[rank].sent_step[0] + cell[rank].sent_step[1] == 0 -> generation++; cell[rank].worker_lives = true
  od
}

init {
  byte rank;
  atomic {
    generation = 1;
    do
    :: rank == RANKS -> break
    :: else ->
       cell[rank].worker_lives = true; cell[rank].server_lives = true;
       run Worker(rank); run Server(rank); run Watch(rank); rank++
    od;
    rank = 0
  }
  do
  :: rank == RANKS -> break
  :: else ->
     committed(rank) == STEPS;
     d_step { assert(cell[rank].weights[0] == STEPS && cell[rank].weights[1] == STEPS); rank++ }
  od
}
