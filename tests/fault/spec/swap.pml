/* Another optimizer takes over in a running job: named, adopted, warmed up, in force or refused, all by records
 * (rules 16, 17 and the page of common/step_protocol/swap.h).
 *
 * RANKS cells, each with the server in force and the next one. State is the step that it has seen, in two halves. A
 * kill takes either server or the worker after any store. -DWITHOUT_name switches a rule off. */

#ifndef RANKS
#define RANKS 1
#endif
#ifndef STEPS
#define STEPS 4
#endif
#ifndef WARM
#define WARM 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

typedef Cell {
  byte decided;
  bool named[STEPS + 1];                    /* by the record of each step: the swap is being warmed up */
  bool next_epoch[STEPS + 1];               /* the step is the next optimizer's */
  byte done, next_done;                     /* steps that each server has counted */
  byte state[2], next_state[2];             /* of their moments */
  byte master[2], gradient[2];
  bool offered, refused;
  bool vote_offered, vote_refused;
  byte vote_step;
  bool worker_lives, server_lives, next_lives
};
Cell cell[RANKS];
byte faults = FAULTS, first_named;
bool may_refuse;

#define committed(r) (cell[r].next_epoch[cell[r].decided] -> cell[r].next_done : cell[r].done)
#if RANKS == 1
#define all_voted(s) (cell[0].vote_step >= (s))
#define all_committed(s) (committed(0) >= (s))
#define all_offered (cell[0].vote_offered)
#define any_refused (cell[0].vote_refused)
#else
#define all_voted(s) (cell[0].vote_step >= (s) && cell[1].vote_step >= (s))
#define all_committed(s) (committed(0) >= (s) && committed(1) >= (s))
#define all_offered (cell[0].vote_offered && cell[1].vote_offered)
#define any_refused (cell[0].vote_refused || cell[1].vote_refused)
#endif
#ifdef WITHOUT_REFUSED_TOGETHER
#define refuses (cell[rank].refused)
#else
#define refuses any_refused
#endif

#ifdef WITHOUT_ONE_SERVER_A_STEP
#define is_of_next(step) false
#else
#define is_of_next(step) cell[rank].next_epoch[step]
#endif

inline decide() {
  d_step {
    previous = step - 1;
    if
    :: cell[rank].next_epoch[previous] -> cell[rank].next_epoch[step] = true
    :: !cell[rank].next_epoch[previous] && refuses
    :: !cell[rank].next_epoch[previous] && !refuses && cell[rank].named[previous] && previous >= first_named + WARM ->
       cell[rank].next_epoch[step] = true
    :: !cell[rank].next_epoch[previous] && !refuses && cell[rank].named[previous] && previous < first_named + WARM ->
       cell[rank].named[step] = true
    :: !cell[rank].next_epoch[previous] && !refuses && !cell[rank].named[previous] && all_offered ->
       cell[rank].named[step] = true; first_named = step
    :: !cell[rank].next_epoch[previous] && !refuses && !cell[rank].named[previous] && !all_offered
    fi;
    peer = 0;
    do
    :: peer == RANKS -> break
    :: else ->
       assert(cell[peer].decided < step || cell[peer].named[step] == cell[rank].named[step]);
       assert(cell[peer].decided < step || cell[peer].next_epoch[step] == cell[rank].next_epoch[step]);
       peer++
    od;
    cell[rank].decided = step; previous = 0; peer = 0
  }
}

proctype Worker(byte rank) {
  byte step, previous, peer;
again:
  skip;
  d_step { step = 0; previous = 0; peer = 0 }
  cell[rank].worker_lives = true;
  {
    do
    :: cell[rank].decided == STEPS -> break
    :: else ->
       step = cell[rank].decided + 1;
       if
       :: cell[rank].vote_step == step      /* killed after its vote: another rank may have decided with it */
       :: else ->
          all_committed(step - 1);          /* the gathers of all parameters */
          assert(cell[rank].master[0] == step - 1 && cell[rank].master[1] == step - 1);
#ifndef WITHOUT_STANDBY_AWAITED
          if                                /* the gradients before stand until the next server has followed them */
          :: cell[rank].named[step - 1] ->
             if
             :: cell[rank].next_done >= step - 1
             :: cell[rank].refused
             :: may_refuse && !cell[rank].refused -> cell[rank].refused = true
             fi
          :: else
          fi;
#endif
          cell[rank].gradient[0] = 0;
          cell[rank].gradient[0] = step;
          cell[rank].gradient[1] = step;
          d_step {
            cell[rank].vote_offered = cell[rank].offered; cell[rank].vote_refused = cell[rank].refused;
            cell[rank].vote_step = step
          }
       fi;
       all_voted(step);
       decide()
    od
  } unless { !cell[rank].worker_lives; goto again }
}

inline apply_half(h) {
  d_step {
    assert(cell[rank].gradient[h] == step);
    assert(cell[rank].master[h] == step - 1 || cell[rank].master[h] == step);
    cell[rank].master[h] = step
  }
}

proctype Server(byte rank) {
  byte step;
again:
  step = 0;
  cell[rank].server_lives = true;
  {
    skip;
end_server:
    do
    :: cell[rank].decided > cell[rank].done && !is_of_next(cell[rank].done + 1) ->
       step = cell[rank].done + 1;
       apply_half(0);
       cell[rank].state[0] = step;
       apply_half(1);
       cell[rank].state[1] = step;
       cell[rank].done = step;
       step = 0
    od
  } unless { !cell[rank].server_lives; goto again }
}

/* Takes over what the state in force has after the step that first named it, then sees every step that follows. */
proctype NextServer(byte rank) {
  byte step;
again:
  step = 0;
  cell[rank].next_lives = true;
  {
    skip;
end_next:
    do
    :: cell[rank].next_done == 0 && cell[rank].named[cell[rank].decided] && cell[rank].done >= first_named &&
       !cell[rank].refused ->
#ifdef WITHOUT_WORD_LAST
       cell[rank].next_done = first_named;
#endif
       step = first_named;
       cell[rank].next_state[0] = cell[rank].state[0];
       cell[rank].next_state[1] = cell[rank].state[1];
       cell[rank].next_done = step;
       step = 0
    :: cell[rank].next_done > 0 && cell[rank].decided > cell[rank].next_done &&
       (cell[rank].named[cell[rank].next_done + 1] || cell[rank].next_epoch[cell[rank].next_done + 1]) ->
       step = cell[rank].next_done + 1;
       assert(cell[rank].next_state[0] == step - 1 || cell[rank].next_state[0] == step);
       assert(cell[rank].next_state[1] == step - 1 || cell[rank].next_state[1] == step);
       if
       :: cell[rank].next_epoch[step] -> apply_half(0); apply_half(1)
       :: else
       fi;
       d_step { assert(cell[rank].gradient[0] == step || cell[rank].refused); cell[rank].next_state[0] = step }
       d_step { assert(cell[rank].gradient[1] == step || cell[rank].refused); cell[rank].next_state[1] = step }
       cell[rank].next_done = step;
       step = 0
    od
  } unless { !cell[rank].next_lives; goto again }
}

proctype Outside(byte rank) {
end_outside:
  do
  :: !cell[rank].offered -> cell[rank].offered = true                  /* its launcher has it ready, at any time */
  :: atomic { faults > 0 && cell[rank].worker_lives && cell[rank].decided < STEPS -> faults--; cell[rank].worker_lives = false }
  :: atomic { faults > 0 && cell[rank].server_lives -> faults--; cell[rank].server_lives = false }
  :: atomic { faults > 0 && cell[rank].next_lives -> faults--; cell[rank].next_lives = false }
  od
}

init {
  byte rank;
  atomic {
#ifdef REFUSALS
    may_refuse = true;
#endif
    do
    :: rank == RANKS -> break
    :: else ->
       cell[rank].worker_lives = true; cell[rank].server_lives = true; cell[rank].next_lives = true;
       run Worker(rank); run Server(rank); run NextServer(rank); run Outside(rank); rank++
    od;
    rank = 0
  }
  do
  :: rank == RANKS -> break
  :: else ->
     cell[rank].decided == STEPS && committed(rank) == STEPS;
     d_step {
       assert(cell[rank].master[0] == STEPS && cell[rank].master[1] == STEPS);
       assert(!cell[rank].next_epoch[STEPS] || (cell[rank].next_state[0] == STEPS && cell[rank].next_state[1] == STEPS));
       rank++
     }
  od
}
