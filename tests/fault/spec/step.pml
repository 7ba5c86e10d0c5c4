/* Step and recovery: gather, gradients, vote, record, update, exchange (rules 1, 3 to 7 and 9).
 *
 * RANKS cells of two chunks: a bucket that is gathered and has gradients, and a selection bias, which has neither: it is
 * updated from the counts beside the record. An update is one store a half (redo.pml shows that a real one is as good as
 * that). A kill takes a worker or an optimizer server after any store. -DWITHOUT_RULE_n switches a rule off. */

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
  /* segments: they outlive the processes */
  byte joined, decided, copy_ready;
  byte chunks_done;                         /* step * 2, + 1 when the bucket is counted */
  byte record_step[2], record[2];           /* two slots, by step % 2; a record is the generation that decided it */
  byte gradient[2];                         /* halves: the step they are of; 0: being accumulated */
  byte ready_generation, ready_step;
  byte counts;                              /* of experts: the step whose vote they are of */
  byte master[2], bias;                     /* the step after which they stand */
  /* what the rank contributes to collectives */
  byte label_generation, label;             /* the newest operation that it has contributed to */
  byte slot_committed, slot_decided, slot_record;
  byte vote_step;
  /* processes */
  bool worker_lives, server_lives, finished, late
};
Cell cell[RANKS];
byte generation, faults = FAULTS;
byte truth[STEPS + 1];                      /* the record that the first rank to apply a step applied */

#define committed(r) (cell[r].chunks_done / 2)
#define GATHER(s) ((s) * 4 + 1)
#define VOTE(s)   ((s) * 4 + 2)
#define LEAVE     (STEPS * 4 + 3)

#ifdef WITHOUT_RULE_4
#define contributed(p, operation) (cell[p].label >= (operation))
#else
#define contributed(p, operation) (cell[p].label_generation == mine && cell[p].label >= (operation))
#endif
#if RANKS == 1
#define all_contributed(operation) contributed(0, operation)
#define any_finished (cell[0].finished)
#elif RANKS == 2
#define all_contributed(operation) (contributed(0, operation) && contributed(1, operation))
#define any_finished (cell[0].finished || cell[1].finished)
#else
#define all_contributed(operation) (contributed(0, operation) && contributed(1, operation) && contributed(2, operation))
#define any_finished (cell[0].finished || cell[1].finished || cell[2].finished)
#endif

/* Gradients of `step`: cleared, then accumulated. */
inline accumulate() {
  d_step { cell[rank].gradient[0] = 0; cell[rank].gradient[1] = 0 }
  cell[rank].gradient[0] = step;
  cell[rank].gradient[1] = step
}

inline resolve() {
  d_step {
    most = 0; least = STEPS; source = 0; peer = 0;
    do
    :: peer == RANKS -> break
    :: else ->
       if
       :: cell[peer].slot_decided > most -> most = cell[peer].slot_decided; source = peer
       :: else
       fi;
       if
       :: cell[peer].slot_committed < least -> least = cell[peer].slot_committed
       :: else
       fi;
       peer++
    od;
    assert(most <= least + 1);              /* rule 6: else the segments are not one state */
    adopted = cell[source].slot_record;
    step = most + 1; peer = 0; source = 0
  }
}

inline look_at_parameters() {
  d_step {
    wrong = false; peer = 0;
    do
    :: peer == RANKS -> break
    :: else ->
       wrong = wrong || cell[peer].master[0] != step - 1 || cell[peer].master[1] != step - 1;
       peer++
    od;
    peer = 0
  }
}

/* The record of the step before `step` + 1, then decided_step: a release store after all of it (rule 9). */
inline decide(value) {
#ifdef WITHOUT_RULE_9
  cell[rank].decided = step;
#endif
  d_step { cell[rank].counts = step; cell[rank].record_step[step % 2] = 0 }
  d_step { cell[rank].record[step % 2] = value; cell[rank].record_step[step % 2] = step }
  cell[rank].decided = step
}

proctype Worker(byte rank) {
  byte mine, step, peer, most, least, source, adopted;
  bool wrong, storing;
again:
  skip;
  d_step { mine = 0; step = 0; most = 0; least = 0; adopted = 0; wrong = false; storing = false }
  cell[rank].worker_lives;                                             /* until it is started again */
  {
#ifdef WITHOUT_RULE_3
    skip;
#else
    generation > cell[rank].joined;
#endif
    d_step { mine = generation; cell[rank].joined = mine }
    d_step {
      cell[rank].slot_committed = committed(rank);
      cell[rank].slot_decided = cell[rank].decided;
      cell[rank].slot_record = cell[rank].record[cell[rank].decided % 2];
      cell[rank].label_generation = mine;
      cell[rank].label = 0
    }
    all_contributed(0);
    resolve();
    if
    :: cell[rank].decided + 1 < step -> step = step - 1; decide(adopted); step++
    :: else
    fi;
    do
    :: step > STEPS -> break
    :: else ->
       cell[rank].copy_ready == step - 1;
       cell[rank].label = GATHER(step);
       all_contributed(GATHER(step));
       look_at_parameters();
       storing = true;
       if
#ifdef WITHOUT_RULE_5
       :: cell[rank].ready_step == step                                /* of whatever generation */
#endif
       :: cell[rank].ready_step != step || cell[rank].ready_generation != mine ->
          accumulate();
          d_step { cell[rank].ready_generation = mine; cell[rank].ready_step = step }
       fi;
       storing = false;
#ifndef WITHOUT_RULE_6
       committed(rank) >= step - 1;
#endif
       d_step { cell[rank].vote_step = step; cell[rank].label = VOTE(step) }
       all_contributed(VOTE(step));
       assert(!wrong);                                                 /* no torn or old parameters in a decided step */
       decide(mine);
       step++
    od;
    committed(rank) == STEPS;
    cell[rank].label = LEAVE;
#ifndef WITHOUT_RULE_7
    all_contributed(LEAVE);
#endif
    cell[rank].finished = true
  } unless {
    cell[rank].finished || !cell[rank].worker_lives || generation > mine && mine != 0;
#ifdef WITHOUT_RULE_1
    cell[rank].late = cell[rank].worker_lives && storing;              /* a lane of the attempt goes on */
#endif
    if
    :: cell[rank].finished
    :: else -> goto again
    fi
  }
}

#ifdef WITHOUT_RULE_1
proctype LateLane(byte rank) {
  byte step;
end_late:
  do
  :: cell[rank].late -> step = cell[rank].decided + 1; cell[rank].late = false; accumulate()
  od
}
#endif

proctype Server(byte rank) {
  byte step;
again:
  step = 0;
  cell[rank].server_lives = true;
  {
end_server:
    do
    :: cell[rank].copy_ready != (cell[rank].chunks_done + 1) / 2 ->    /* also by a successor */
       cell[rank].copy_ready = (cell[rank].chunks_done + 1) / 2
    :: cell[rank].copy_ready == (cell[rank].chunks_done + 1) / 2 && cell[rank].decided > committed(rank) &&
       cell[rank].chunks_done % 2 == 1 ->
       step = committed(rank) + 1;
       assert(cell[rank].record_step[step % 2] == step && cell[rank].counts == step);
       cell[rank].bias = step;
       cell[rank].chunks_done++;
       step = 0
    :: cell[rank].copy_ready == (cell[rank].chunks_done + 1) / 2 && cell[rank].decided > committed(rank) &&
       cell[rank].chunks_done % 2 == 0 ->
       step = committed(rank) + 1;
       assert(cell[rank].record_step[step % 2] == step);               /* whole */
       d_step {
         assert(truth[step] == 0 || truth[step] == cell[rank].record[step % 2]);
         truth[step] = cell[rank].record[step % 2]
       }
       d_step { assert(cell[rank].gradient[0] == step); cell[rank].master[0] = step }
       d_step { assert(cell[rank].gradient[1] == step); cell[rank].master[1] = step }
       cell[rank].chunks_done++;
       step = 0
    od
  } unless { !cell[rank].server_lives; goto again }
}

/* Kills, replacements, and the generation that a replacement joins. Once a worker has left, all have committed: the
 * others, a replacement that came too late among them, are told to end. */
proctype Watch(byte rank) {
end_watch:
  do
  :: atomic { faults > 0 && cell[rank].worker_lives && !cell[rank].finished -> faults--; cell[rank].worker_lives = false }
  :: atomic { faults > 0 && cell[rank].server_lives -> faults--; cell[rank].server_lives = false }
  :: !cell[rank].worker_lives && !any_finished -> cell[rank].worker_lives = true; generation++
  :: d_step { any_finished && !cell[rank].finished && committed(rank) == STEPS ->
              cell[rank].worker_lives = true; cell[rank].finished = true }
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
       run Worker(rank); run Server(rank); run Watch(rank);
#ifdef WITHOUT_RULE_1
       run LateLane(rank);
#endif
       rank++
    od;
    rank = 0
  }
  do
  :: rank == RANKS -> break
  :: else ->
     cell[rank].finished;
     d_step {
       assert(cell[rank].decided == STEPS && committed(rank) == STEPS && cell[rank].bias == STEPS);
       assert(cell[rank].master[0] == STEPS && cell[rank].master[1] == STEPS);
       rank++
     }
  od
}
