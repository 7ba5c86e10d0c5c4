/* The world is left, and what memory holds goes to disk before (ControlBlock::rescue_step).
 *
 * One cell of CHUNKS chunks, whose checkpoint service also writes the part of a replica on a lost node. That node's own
 * checkpoint service may live for a while. Updates and images are those of snapshot.pml. A kill takes the checkpoint
 * service, or the launcher that leads the rescue: then the world goes on, and is left once more. -DWITHOUT_… switches a rule off. */

#ifndef CHUNKS
#define CHUNKS 1
#endif
#ifndef STEPS
#define STEPS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

#define armed(step) ((step) * 2 + 1)
#define ended(step) ((step) * 2)
#define is_armed (snapshot % 2 == 1)
#define committed (chunks_done / CHUNKS)
#ifdef WITHOUT_COMMITTED
#define is_due (rescue_step != 0 && rescue_step == decided && reported != rescue_step)
#else
#define is_due (rescue_step != 0 && rescue_step == decided && reported != rescue_step && committed == rescue_step)
#endif

typedef Chunk {
  byte value;                               /* the step after which it stands */
  byte image;
  byte image_flag;                          /* the step that the image is of */
  byte read_mark
};
Chunk chunk[CHUNKS];
byte snapshot, chunks_done, decided, rescue_step, faults = FAULTS;
byte reported;                              /* newest step whose parts are durable */
byte writers;                               /* of the part of the lost rank */
bool worker_lives, reader_lives, lost_lives, left;

proctype Worker() {
end_worker:
  do
  :: atomic { worker_lives && decided < STEPS && committed == decided -> decided++ }
  od
}

proctype Server() {
  byte k, was;
end_server:
  do
  :: atomic { decided > committed -> k = chunks_done % CHUNKS; was = snapshot };
     if
     :: was % 2 == 1 && chunk[k].read_mark != was / 2 && chunk[k].image_flag != was / 2 ->
        d_step { chunk[k].image = chunk[k].value; chunk[k].image_flag = was / 2 }
     :: else
     fi;
     chunk[k].value = committed + 1;
     d_step { chunks_done++; k = 0; was = 0 }
  od
}

/* Of the node that is lost: it ends by itself, in the middle of a part perhaps. */
proctype Lost() {
  if
  :: atomic { writers++; assert(writers == 1) }; writers--
  :: true
  fi;
  lost_lives = false
}

inline write_parts() {
  atomic { writers++; assert(writers == 1); k = 0; torn = false }
  do
  :: k == CHUNKS -> break
  :: else ->
     value = chunk[k].value;
     if
     :: chunk[k].image_flag == step -> value = chunk[k].image
     :: else
     fi;
     d_step { torn = torn || value != step; value = 0; chunk[k].read_mark = step; k++ }
  od;
  writers--;
  d_step {
    if
    :: snapshot == armed(step) -> assert(!torn); reported = step; snapshot = ended(step)
    :: else
    fi
  }
}

proctype Reader() {
  byte k, step, value;
  bool torn;
again:
  skip;
  d_step {
    k = 0; step = 0; value = 0; torn = false; writers = (lost_lives -> writers : 0);
    if
    :: is_armed -> snapshot = snapshot - 1
    :: else
    fi;
    reader_lives = true
  }
  {
end_reader:
    do
    :: atomic { is_due && !is_armed -> step = rescue_step };
#ifndef WITHOUT_CLEARED_MARKS
       d_step {                             /* of a predecessor that did not come to its end */
         k = 0;
         do
         :: k == CHUNKS -> break
         :: else -> chunk[k].read_mark = 0; k++
         od;
         k = 0
       }
#endif
       snapshot = armed(step);
#ifdef WITHOUT_LOOKING_AGAIN
       write_parts();
#else
       if
       :: decided == step && rescue_step == step -> write_parts()
       :: else -> snapshot = ended(step)
       fi;
#endif
       d_step { step = 0; k = 0; value = 0; torn = false }
    od
  } unless { !reader_lives; goto again }
}

/* Whatever leads the world away: workers end, then the order; a launcher that dies meanwhile takes it back. */
proctype Launcher() {
working:
  rescue_step = 0;
  worker_lives = true;
  do
  :: decided > 0 ->
#ifndef WITHOUT_WORKERS_ENDED
     worker_lives = false;
#endif
     if
     :: faults > 0 -> faults--; goto working
     :: true
     fi;
 #ifndef WITHOUT_LOST_ENDED
     !lost_lives;
#endif
     rescue_step = decided;
     if
     :: faults > 0 -> faults--; goto working
     :: reported == rescue_step -> break
     fi
  od;
  assert(reported == decided);              /* no step that was decided is lost */
  left = true
}

proctype Faults() {
end_faults:
  do
  :: atomic { faults > 0 && reader_lives -> faults--; reader_lives = false }
  od
}

init {
  atomic {
    reader_lives = true; lost_lives = true;
    run Worker(); run Server(); run Reader(); run Lost(); run Launcher(); run Faults()
  }
  left
}
