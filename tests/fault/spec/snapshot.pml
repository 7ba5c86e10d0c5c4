/* A snapshot of master and state while the next step overwrites them (rules 18 to 20).
 *
 * One cell of CHUNKS chunks, an image slot for SLOTS of them. The record of each step may order a snapshot. Writer: the optimizer
 * server, whose update of a chunk stands for the redo of redo.pml. Reader: the checkpoint service. A kill takes either
 * after any store. -DWITHOUT_RULE_n switches a rule off. */

#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

#define armed(step) ((step) * 2 + 1)
#define ended(step) ((step) * 2)
#define is_armed (snapshot % 2 == 1)
#define snapshot_step (snapshot / 2)

typedef Chunk {
  byte half[2];                             /* the step after which they stand */
  byte image[2];                            /* saved before they were overwritten */
  byte image_flag;                          /* the step that the image is of */
  byte read_mark                            /* the step for which the reader is done with the chunk */
};
Chunk chunk[CHUNKS];
byte snapshot;                              /* step * 2 + armed; compare-and-swap by both sides */
byte chunks_done, decided, faults = FAULTS;
byte images;                                /* in use; those of a snapshot go with it */
bool ordered[STEPS + 1];                    /* by the record of each step */
bool server_lives, reader_lives;
byte reported;                              /* newest step that has a part */

#define committed (chunks_done / CHUNKS)

/* Votes: idle when no snapshot is under way; a record orders one only if so, and if the record before ordered none. */
proctype Worker() {
  bool idle;
  do
  :: decided == STEPS -> break
  :: decided < STEPS && committed == decided ->
     idle = !is_armed;
     if
#ifdef WITHOUT_RULE_18_IDLE
     :: ordered[decided + 1] = true
#elif defined(WITHOUT_RULE_18_BEFORE)
     :: idle -> ordered[decided + 1] = true
#else
     :: idle && !ordered[decided] -> ordered[decided + 1] = true
#endif
     :: skip
     fi;
     decided++
  od
}

inline arm() {
  d_step {
    if
    :: ordered[committed] && snapshot < ended(committed) ->
       assert(!is_armed);                   /* else the one under way would be lost */
       snapshot = armed(committed); images = 0
    :: else
    fi
  }
}

/* Before-image, flag, overwrite. Where there is no room for another image, the snapshot is cancelled. */
inline save_image() {
  was = snapshot;
  if
  :: was % 2 == 1 && chunk[k].read_mark != was / 2 && chunk[k].image_flag != was / 2 ->
     if
     :: images < SLOTS ->
#ifdef WITHOUT_RULE_19_IMAGE_FIRST
        chunk[k].image_flag = was / 2;
#endif
        images++;
        chunk[k].image[0] = chunk[k].half[0];
        chunk[k].image[1] = chunk[k].half[1];
        chunk[k].image_flag = was / 2
     :: else -> d_step { if :: snapshot == was -> snapshot = was - 1 :: else fi }
     fi
  :: else
  fi;
  was = 0
}

proctype Server() {
  byte k, step, was;
again:
  skip;
  d_step { k = 0; step = 0; was = 0 }
  server_lives = true;
  {
end_server:
    do
#ifdef WITHOUT_RULE_18_ARMED
    :: chunks_done % CHUNKS == 1 % CHUNKS && ordered[committed] && snapshot < ended(committed) -> arm()
    :: decided > committed ->
#else
    :: chunks_done % CHUNKS == 0 && ordered[committed] && snapshot < ended(committed) -> arm()
    :: decided > committed && !(chunks_done % CHUNKS == 0 && ordered[committed] && snapshot < ended(committed)) ->
#endif
       step = committed + 1; k = chunks_done % CHUNKS;
#ifndef WITHOUT_RULE_19_IMAGE
       if
       :: chunk[k].half[0] != step -> save_image()
       :: else                              /* its successor: the redo area holds the update, the image is saved */
       fi;
#endif
       chunk[k].half[0] = step;
       chunk[k].half[1] = step;
       chunks_done++;
       step = 0; k = 0
    od
  } unless { !server_lives; goto again }
}

/* Read, then look at the flag: if it is up, the image is what counts. */
inline read_chunk() {
#ifdef WITHOUT_RULE_19_FLAG
  flagged = chunk[k].image_flag == step;
#endif
  value[0] = chunk[k].half[0];
  value[1] = chunk[k].half[1];
#ifndef WITHOUT_RULE_19_FLAG
  flagged = chunk[k].image_flag == step;
#endif
  if
  :: flagged -> value[0] = chunk[k].image[0]; value[1] = chunk[k].image[1]
  :: else
  fi;
  torn = torn || value[0] != step || value[1] != step;
  chunk[k].read_mark = step;
  k++
}

proctype Reader() {
  byte k, step, value[2];
  bool torn, flagged;
again:
  skip;
  d_step { k = 0; step = 0; value[0] = 0; value[1] = 0; torn = false; flagged = false }
  reader_lives = true;
  {
#ifndef WITHOUT_RULE_20_RESTARTED
    if
    :: d_step { is_armed -> snapshot = ended(snapshot_step) }
    :: !is_armed
    fi;
#endif
end_reader:
    do
    :: is_armed ->
       step = snapshot_step; k = 0; torn = false;
       do
       :: k == CHUNKS -> break
       :: else -> read_chunk()
       od;
       skip;
       d_step {
#ifndef WITHOUT_RULE_20_CHECKED
         if
         :: snapshot == armed(step) ->
#endif
            assert(!torn); reported = step; snapshot = ended(step)
#ifndef WITHOUT_RULE_20_CHECKED
         :: else
         fi
#endif
       }
       d_step { step = 0; k = 0; value[0] = 0; value[1] = 0; torn = false; flagged = false }
    od
  } unless { !reader_lives; goto again }
}

proctype Faults() {
end_faults:
  do
  :: atomic { faults > 0 && server_lives -> faults--; server_lives = false }
  :: atomic { faults > 0 && reader_lives -> faults--; reader_lives = false }
  od
}

init {
  byte k;
  atomic { server_lives = true; reader_lives = true; run Worker(); run Server(); run Reader(); run Faults() }
  committed == STEPS && !is_armed && !(ordered[STEPS] && snapshot < ended(STEPS));
  do
  :: k == CHUNKS -> break
  :: else -> assert(chunk[k].half[0] == STEPS && chunk[k].half[1] == STEPS); k++
  od
}
