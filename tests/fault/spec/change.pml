/* A person's changes of a running job: numbered settings that the votes take up (rules 16, 17).
 *
 * Each node's launcher prepares settings in its own time, newer ones at any time, and frees what nobody needs. A
 * setting stands for its values as well as for the memory and plugin of its optimizer (a state epoch). Every rank takes part in every
 * vote. A kill takes a worker, a server or a launcher after any store. -DWITHOUT_RULE_n switches a rule off. */

#ifndef STEPS
#define STEPS 3
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define RANKS 2
#define COUNT (CHANGES + 1)

mtype = { freed, torn, whole };
typedef Cell {
  mtype setting[COUNT];
  byte prepared, offered;                   /* numbers; written by launcher and worker */
  byte decided, committed;
  byte followed[STEPS + 1];                 /* the change number of each step's record */
  byte used;                                /* the server's plugin: number + 1; 0: none is loaded */
  byte vote_step, vote;
  bool worker_lives, server_lives, launcher_lives
};
Cell cell[RANKS];
byte ordered, faults = FAULTS;

#define other (1 - rank)
#define in_force(r) (cell[r].followed[cell[r].decided])

/* The setting that the launcher has prepared, for a vote. */
inline offer() {
  do
  :: number = cell[rank].prepared;
     cell[rank].offered = number;
     if
#ifdef WITHOUT_RULE_17_AGAIN
     :: true -> break
#else
     :: cell[rank].prepared != number       /* it may be gone already */
     :: else -> break
#endif
     fi
  od;
  skip
}

inline decide() {
  d_step {
    if
#ifdef WITHOUT_RULE_16_ALL
    :: cell[other].vote > number -> number = cell[other].vote          /* the newest offer */
    :: else
#else
    :: cell[other].vote == number
    :: else -> number = in_force(rank)
#endif
    fi;
    assert(cell[rank].setting[number] == whole);
    assert(cell[other].decided < step || cell[other].followed[step] == number);
    cell[rank].followed[step] = number;
    cell[rank].decided = step;
    number = 0; step = 0
  }
}

/* Collectives of a whole generation are in step.pml; here a vote is taken again until both ranks have decided. */
proctype Worker(byte rank) {
  byte step, number;
again:
  skip;
  d_step { step = 0; number = 0 }
  cell[rank].worker_lives = true;
  {
    do
    :: cell[rank].decided == STEPS -> break
    :: cell[rank].decided < STEPS && cell[other].decided > cell[rank].decided && cell[rank].committed >= cell[rank].decided ->
       d_step {                                                        /* the exchange: the record is adopted */
         step = cell[rank].decided + 1;
         cell[rank].followed[step] = cell[other].followed[step];
         cell[rank].decided = step; step = 0
       }
    :: cell[rank].decided < STEPS && cell[other].decided <= cell[rank].decided && cell[rank].committed == cell[rank].decided &&
       cell[other].committed >= cell[rank].decided ->
       step = cell[rank].decided + 1;
       if
       :: cell[rank].vote_step == step -> number = cell[rank].vote     /* it has voted; a vote does not change */
       :: else ->
          offer();
          d_step { cell[rank].vote = number; cell[rank].vote_step = step }
       fi;
       if
       :: d_step { cell[other].decided >= step -> number = 0; step = 0 }
       :: cell[other].vote_step == step && cell[other].decided < step -> decide()
       fi
    od
  } unless { !cell[rank].worker_lives; goto again }
}

proctype Server(byte rank) {
  byte step;
again:
  skip;
  d_step { step = 0; cell[rank].used = 0 }
  cell[rank].server_lives = true;
  {
end_server:
    do
    :: cell[rank].decided > cell[rank].committed ->
       step = cell[rank].committed + 1;
#ifdef WITHOUT_RULE_17_LOADED
       if                                                              /* what is newest in the cell, as a start would take */
       :: cell[rank].used == 0 -> cell[rank].used = cell[rank].prepared + 1
       :: else
       fi;
#else
       cell[rank].used = cell[rank].followed[step] + 1;
#endif
       d_step {
         assert(cell[rank].used == cell[rank].followed[step] + 1);
         assert(cell[rank].setting[cell[rank].followed[step]] == whole);
         cell[rank].committed = step; step = 0
       }
    od
  } unless { !cell[rank].server_lives; goto again }
}

#ifdef WITHOUT_RULE_17_FREED
#define kept(n) ((n) == cell[rank].prepared || (n) == in_force(rank))
#else
#define kept(n) ((n) == cell[rank].prepared || (n) == cell[rank].offered || (n) == in_force(rank) || \
                 cell[rank].used == (n) + 1)
#endif
#define may_go(n) ((n) < cell[rank].prepared && cell[rank].setting[n] == whole && !kept(n))

proctype Launcher(byte rank) {
  byte number;
again:
  skip;
  d_step { number = 0; cell[rank].launcher_lives = true }
  {
end_launcher:
    do
    :: cell[rank].prepared < ordered ->                                /* the full setting, whatever came between */
       d_step {
         number = ordered; cell[rank].setting[number] = torn;
#ifdef WITHOUT_RULE_16_WHOLE
         cell[rank].prepared = number
#endif
       }
       cell[rank].setting[number] = whole;
       d_step { cell[rank].prepared = number; number = 0 }
    :: d_step { may_go(0) -> cell[rank].setting[0] = freed }
    :: d_step { may_go(1) -> cell[rank].setting[1] = freed }
    od
  } unless { !cell[rank].launcher_lives; goto again }
}

/* Neither side asks for a number that it was given: the next one is numbered when it is asked for. */
proctype Person() {
  do
  :: ordered == CHANGES -> break
  :: ordered < CHANGES -> ordered++
  od
}

proctype Faults(byte rank) {
end_faults:
  do
  :: atomic { faults > 0 && cell[rank].worker_lives && cell[rank].decided < STEPS -> faults--; cell[rank].worker_lives = false }
  :: atomic { faults > 0 && cell[rank].server_lives -> faults--; cell[rank].server_lives = false }
  :: atomic { faults > 0 && cell[rank].launcher_lives -> faults--; cell[rank].launcher_lives = false }
  od
}

init {
  byte rank, number;
  atomic {
    do
    :: rank == RANKS -> break
    :: else ->
       number = 1;
       do
       :: number == COUNT -> break
       :: else -> cell[rank].setting[number] = freed; number++
       od;
       cell[rank].setting[0] = whole;
       cell[rank].worker_lives = true; cell[rank].server_lives = true; cell[rank].launcher_lives = true;
       run Worker(rank); run Server(rank); run Launcher(rank);
       rank++
    od;
    run Person(); run Faults(0)              /* ranks are alike: a fault takes a process of the first */
  }
  cell[0].committed == STEPS && cell[1].committed == STEPS
}
