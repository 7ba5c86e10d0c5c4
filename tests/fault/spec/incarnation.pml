/* Going back to a checkpoint: segments that are lost or do not belong together (rule 8).
 *
 * Two cells of one bucket; the checkpoint is of step 1. A fault takes all segments of a cell, once it has begun; the world then goes
 * on from the checkpoint under the next incarnation, each cell in new segments. -DWITHOUT_name switches a rule off. */

#ifndef STEPS
#define STEPS 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define CHECKPOINT 1

typedef Cell {
  byte incarnation;                         /* of its segments; 0: it has none */
  bool loaded;                              /* their header says that they are complete */
  byte decided, committed, master, gradient;
  byte joined, label, slot_incarnation;     /* joined: generation */
  bool slot_loaded;
  byte slot_decided, slot_committed
};
Cell cell[2];
byte wanted = 1;                            /* incarnation that the coordinator has announced */
byte generation = 1, faults = FAULTS;

#define all_contributed(operation) (cell[0].joined == mine && cell[1].joined == mine && \
                                    cell[0].label >= (operation) && cell[1].label >= (operation))

/* A launcher: segments of the incarnation that is wanted. */
proctype Launcher(byte rank) {
end_launcher:
  do
  :: cell[rank].incarnation < wanted ->
#ifdef WITHOUT_RULE_8_NEW
     cell[rank].committed = CHECKPOINT;     /* the old segments, set back */
     cell[rank].decided = CHECKPOINT;
     cell[rank].master = CHECKPOINT;
     d_step { cell[rank].gradient = 0; cell[rank].loaded = true; cell[rank].incarnation = wanted }
#else
     d_step {                               /* whoever served the old ones has ended (rule 2) */
       cell[rank].loaded = false; cell[rank].gradient = 0; cell[rank].master = 0;
       cell[rank].decided = CHECKPOINT; cell[rank].committed = CHECKPOINT; cell[rank].incarnation = wanted
     }
     cell[rank].master = CHECKPOINT;        /* the restore takes a while */
     cell[rank].loaded = true
#endif
  :: atomic { faults > 0 && cell[rank].incarnation == wanted && cell[rank].committed < STEPS ->
              faults--; cell[rank].incarnation = 0; cell[rank].loaded = false; cell[rank].gradient = 0;
              cell[rank].master = 0; cell[rank].decided = CHECKPOINT; cell[rank].committed = CHECKPOINT;
              cell[rank].label = 0; generation++
#ifdef WITHOUT_RULE_8_EQUAL
              ; cell[rank].incarnation = wanted; cell[rank].master = CHECKPOINT; cell[rank].loaded = true
#else
              ; wanted++
#endif
            }
  od
}

proctype Worker(byte rank) {
  byte mine, step, most, least;
again:
  skip;
  d_step { mine = 0; step = 0; most = 0; least = 0 }
  {
    d_step {
#ifdef WITHOUT_RULE_8_LOADED
      generation > cell[rank].joined -> mine = generation;
#else
      generation > cell[rank].joined && cell[rank].loaded && cell[rank].incarnation == wanted -> mine = generation;
#endif
      cell[rank].slot_incarnation = cell[rank].incarnation; cell[rank].slot_loaded = cell[rank].loaded;
      cell[rank].slot_decided = cell[rank].decided; cell[rank].slot_committed = cell[rank].committed;
      cell[rank].joined = mine; cell[rank].label = 1
    }
    all_contributed(1);
#ifndef WITHOUT_RULE_8_EQUAL
    if
    :: cell[0].slot_incarnation == cell[1].slot_incarnation
    :: else -> false                        /* another incarnation is on its way, and a generation with it */
    fi;
#endif
    d_step {
      most = (cell[0].slot_decided > cell[1].slot_decided -> cell[0].slot_decided : cell[1].slot_decided);
      least = (cell[0].slot_committed < cell[1].slot_committed -> cell[0].slot_committed : cell[1].slot_committed);
      assert(most <= least + 1);
      if
      :: cell[rank].decided < most -> cell[rank].decided = most
      :: else
      fi;
      step = most + 1
    }
    do
    :: step > STEPS -> break
    :: else ->
       cell[rank].committed == step - 1;
       cell[rank].label = step * 3;
       all_contributed(step * 3);           /* the gathers */
       d_step { assert(cell[0].master == step - 1 || cell[0].joined != mine); assert(cell[1].master == step - 1 || cell[1].joined != mine) }
       cell[rank].gradient = step;
       cell[rank].label = step * 3 + 1;
       all_contributed(step * 3 + 1);       /* the vote */
       cell[rank].decided = step;
       step++
    od;
    cell[rank].committed == STEPS;
    cell[rank].label = STEPS * 3 + 3;
    all_contributed(STEPS * 3 + 3)
  } unless { generation > mine && mine != 0; goto again }
}

proctype Server(byte rank) {
  byte step;
end_server:
  do
  :: atomic { cell[rank].loaded && cell[rank].decided > cell[rank].committed -> step = cell[rank].committed + 1;
              assert(cell[rank].gradient == step);
              assert(cell[rank].master == step - 1);
              cell[rank].master = step; cell[rank].committed = step; step = 0 }
  od
}

init { atomic { run Launcher(0); run Launcher(1); run Worker(0); run Worker(1); run Server(0); run Server(1) } }
