/* Batch slots: the data server fills them ahead of the worker (rule 21).
 *
 * SLOTS slots of two halves; slot t % SLOTS holds the batch of step t. The worker reads the slot of the step after
 * the decided one, also again after a kill. A kill takes either after any store. -DWITHOUT_RULE_n switches a rule off. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS 4
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

typedef Slot {
  byte half[2];                             /* the step whose rows they are; 0: being written */
  byte step                                 /* the batch that is whole here */
};
Slot slot[SLOTS];
byte decided, faults = FAULTS;
bool worker_lives, data_lives;

proctype Data() {
  byte step, at;
again:
  skip;
  d_step { step = 0; at = 0 }
  data_lives = true;
  {
    step = decided + 1;                     /* a successor knows of nothing but the shared words */
    do
    :: step > STEPS -> break
    :: else ->
       at = step % SLOTS;
       if
#ifndef WITHOUT_RULE_21_KEPT
       :: slot[at].step == step             /* a predecessor has filled it; the worker may be reading it */
       :: slot[at].step != step ->
#else
       :: true ->
#endif
#ifdef WITHOUT_RULE_21_REUSE
          skip;
#else
          decided >= slot[at].step || slot[at].step == step;
#endif
          slot[at].half[0] = 0;
          slot[at].half[1] = 0;
          slot[at].half[0] = step;
          slot[at].half[1] = step;
          slot[at].step = step
       fi;
       step++
    od;
    decided == STEPS
  } unless { !data_lives; goto again }
}

proctype Worker() {
  byte step;
again:
  step = 0;
  worker_lives = true;
  {
    do
    :: decided == STEPS -> break
    :: else ->
       step = decided + 1;
#ifdef WITHOUT_RULE_21_EQUAL
       slot[step % SLOTS].step + SLOTS >= step;                        /* what lies there may be of a step before */
#else
       slot[step % SLOTS].step == step;
#endif
       assert(slot[step % SLOTS].half[0] == step);
       assert(slot[step % SLOTS].half[1] == step);
       decided = step
    od
  } unless { !worker_lives; goto again }
}

proctype Faults() {
end_faults:
  do
  :: atomic { faults > 0 && worker_lives && decided < STEPS -> faults--; worker_lives = false }
  :: atomic { faults > 0 && data_lives && decided < STEPS -> faults--; data_lives = false }
  od
}

init { atomic { worker_lives = true; data_lives = true; run Data(); run Worker(); run Faults() } }
