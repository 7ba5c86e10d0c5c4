/* The parts of two ranks become a checkpoint by its manifest, and older ones go.
 *
 * Each launch of the job goes on from the newest checkpoint to STEPS, with a part of each rank after each step. What a later launch
 * computes may differ, so parts of two launches do not fit together. A kill takes one checkpoint service after any
 * store to the disk, or everything. -DWITHOUT_name switches a rule off. */

#define STEPS 3
#ifndef FAULTS
#define FAULTS 2
#endif

/* the disk: the launch that wrote it; 0: it is not there */
typedef Disk { byte part[STEPS + 1] };
Disk disk[2];
byte manifest[STEPS + 1];
/* the launcher's memory */
byte launch = 1, decided = 1, reported[2];
byte faults = FAULTS;
bool lives[2];

#define other (1 - rank)
#define newest (manifest[3] != 0 -> 3 : (manifest[2] != 0 -> 2 : 1))
#define fits(s) (manifest[s] == 0 || (disk[0].part[s] == manifest[s] && disk[1].part[s] == manifest[s]))

/* What the start of a service leaves: parts that a manifest names, and its own launch's. */
inline drop_unfinished() {
  s = 1;
  do
  :: s > STEPS -> break
  :: else ->
     if
#ifdef WITHOUT_LAUNCH
     :: false
#else
     :: manifest[s] == 0 && disk[rank].part[s] != launch -> disk[rank].part[s] = 0
#endif
     :: else
     fi;
     s++
  od;
  s = 0
}

/* Older manifests go first, then this rank's parts that no manifest names. */
inline prune() {
  s = 1;
  do
  :: s >= at -> break
  :: else ->
#ifdef WITHOUT_MANIFEST_FIRST
     disk[rank].part[s] = 0;
#endif
     if
     :: rank == 0 -> manifest[s] = 0
     :: else
     fi;
     s++
  od;
  s = 1;
  do
  :: s >= newest -> break
  :: else ->
     if
     :: manifest[s] == 0 -> disk[rank].part[s] = 0
     :: else
     fi;
     s++
  od;
  s = 0
}

inline commit() {
#ifndef WITHOUT_ALL_PARTS
  reported[0] >= at && reported[1] >= at;
#endif
#ifdef WITHOUT_NEW_BEFORE_OLD
  manifest[at - 1] = 0;
#endif
  manifest[at] = launch
}

proctype Service(byte rank) {
  byte s, at;
again:
  skip;
  d_step { s = 0; at = 0 }
  lives[rank] = true;
  {
    drop_unfinished();
end_service:
    do
    :: at < decided ->
       at = decided;
       if
#ifdef WITHOUT_LAUNCH
       :: disk[rank].part[at] != 0
#else
       :: disk[rank].part[at] == launch || manifest[at] != 0
#endif
       :: else -> disk[rank].part[at] = launch
       fi;
       reported[rank] = at;
       if
       :: rank == 0 && manifest[at] == 0 -> commit()
       :: else
       fi;
       prune()
    od
  } unless { !lives[rank]; goto again }
}

/* A record orders a snapshot only when no rank has one under way. */
proctype Trainer() {
end_trainer:
  do
  :: d_step { decided < STEPS && reported[0] >= decided && reported[1] >= decided && manifest[decided] != 0 -> decided++ }
  od
}

proctype Faults() {
end_faults:
  do
  :: atomic { faults > 0 && lives[0] && manifest[STEPS] == 0 -> faults--; lives[0] = false }
  :: atomic { faults > 0 && lives[1] && manifest[STEPS] == 0 -> faults--; lives[1] = false }
  :: atomic { faults > 0 && lives[0] && lives[1] && manifest[STEPS] == 0 ->
              faults--; lives[0] = false; lives[1] = false;
              launch++; decided = newest; reported[0] = 0; reported[1] = 0 }
  od
}

/* At any moment: a manifest is there, and each one's parts are, of one launch. */
proctype Monitor() {
end_monitor:
  do
  :: atomic { !(fits(1) && fits(2) && fits(3)) -> assert(false) }
  :: atomic { manifest[1] == 0 && manifest[2] == 0 && manifest[3] == 0 -> assert(false) }
  od
}

init {
  atomic {
    disk[0].part[1] = 1; disk[1].part[1] = 1; manifest[1] = 1;
    lives[0] = true; lives[1] = true;
    run Service(0); run Service(1); run Trainer(); run Faults(); run Monitor()
  }
  manifest[STEPS] != 0
}
