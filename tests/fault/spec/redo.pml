/* The optimizer server's chunks: compute, seal, copy, count (rules 2, 12, 13), with a step in the middle that is skipped.
 *
 * One cell of CHUNKS chunks. An update adds one to each half of a chunk, so one that is applied twice, or to what was
 * already written, shows. A kill takes the server after any store. -DWITHOUT_RULE_n switches a rule off. */

#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef STEPS
#define STEPS 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define SKIPPED 2
#define expected(step) ((step) >= SKIPPED -> (step) - 1 : (step))

typedef Chunk { byte half[2] };
Chunk master[CHUNKS];
byte redo[2];
byte seal;                                  /* chunks_done + 1 of the chunk whose redo area is whole; 0: none */
byte chunks_done;                           /* step * CHUNKS + chunk; only grows */
byte copy_ready[CHUNKS];                    /* the step that each chunk's working copy is of */
byte decided, faults = FAULTS;
byte current;                               /* process number of the server that was started last */
bool dead[FAULTS + 1];

#ifdef WITHOUT_RULE_12                      /* two words: a chunk's number that is set back, and the step's */
byte step_done;
#define done_of_step chunks_done
#define committed step_done
#define CHUNKS_BEFORE_NEXT (step_done * CHUNKS + chunks_done)
#else
#define done_of_step (chunks_done % CHUNKS)
#define committed (chunks_done / CHUNKS)
#define CHUNKS_BEFORE_NEXT chunks_done
#endif

inline compute() {
  redo[0] = master[chunk].half[0] + 1;
  redo[1] = master[chunk].half[1] + 1
}

inline copy() {
  master[chunk].half[0] = redo[0];
  master[chunk].half[1] = redo[1]
}

/* What the working copy of a chunk says is what its master holds. */
inline publish() {
  d_step {
    assert(master[chunk].half[0] == expected(step) && master[chunk].half[1] == expected(step));
    copy_ready[chunk] = step
  }
}

inline count() {
#ifdef WITHOUT_RULE_12
  chunks_done = chunks_done + 1;
  if
  :: chunks_done == CHUNKS -> chunks_done = 0; step_done++
  :: else
  fi
#else
  chunks_done++
#endif
}

/* A successor publishes what its predecessor counted and may not have published: it follows from chunks_done. */
inline publish_again() {
#ifndef WITHOUT_RULE_12_PUBLISHED
  if
  :: chunks_done == 0
  :: else ->
     step = (CHUNKS_BEFORE_NEXT - 1) / CHUNKS + 1; chunk = (CHUNKS_BEFORE_NEXT - 1) % CHUNKS;
     if
     :: step > 0 && copy_ready[chunk] != step -> publish()
     :: else
     fi
  fi;
#endif
  step = 0; chunk = 0
}

proctype Server(byte number) {
  byte step, chunk;
  {
    publish_again();
    do
    :: committed == STEPS -> break
    :: decided > committed ->
       chunk = done_of_step; step = committed + 1;
       if
       :: step == SKIPPED
       :: else ->
          if
#ifdef WITHOUT_RULE_13
          :: seal != 0
#else
          :: seal == CHUNKS_BEFORE_NEXT + 1
#endif
          :: else ->
#ifndef WITHOUT_RULE_13_CLEARED
             seal = 0;
#endif
             compute();
             seal = CHUNKS_BEFORE_NEXT + 1
          fi;
          copy()
       fi;
#ifdef WITHOUT_RULE_12_SKIPPED
       if
       :: step == SKIPPED -> goto skipped
       :: else
       fi;
#endif
       count();
       publish()
    od
  } unless { dead[number] }
#ifdef WITHOUT_RULE_12_SKIPPED
skipped: skip
#endif
}

/* Decides a step when the one before is committed (rule 6), once all of it can be gathered. */
proctype Decider() {
  byte chunk;
  do
  :: decided == STEPS -> break
  :: decided < STEPS && committed == decided ->
     chunk = 0;
     do
     :: chunk == CHUNKS -> break
     :: else -> copy_ready[chunk] == decided; chunk++
     od;
     decided++
  od
}

/* A successor starts when its predecessor was killed and its end was seen; without that, it may still be running. */
proctype Watch() {
end_watch:
  do
  :: faults > 0 ->
     faults--;
#ifndef WITHOUT_RULE_2
     dead[current] = true;
#endif
     atomic { current++; run Server(current) }
  od
}

init {
  byte chunk;
  atomic { run Server(0); run Decider(); run Watch() }
  committed == STEPS && decided == STEPS;
  do
  :: chunk == CHUNKS -> break
  :: else -> assert(master[chunk].half[0] == expected(STEPS)); assert(master[chunk].half[1] == expected(STEPS)); chunk++
  od
}
