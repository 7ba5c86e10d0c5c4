/* Generations over two nodes: node 0's launcher is the coordinator and tells node 1 over a link that may be cut
 * (rule 11).
 *
 * What a launcher was told lies in its cell and outlives it; the coordinator's count and its rendezvous die with it.
 * A kill takes a worker, or the coordinator with the worker of its node. Whoever hears nothing of the other may give
 * up, which ends the run there: never do two parts of the world go on apart. -DWITHOUT_name switches a rule off. */

#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif

typedef Node {
  byte told, joined, lost;                  /* generations; workers of this node that were lost */
  bool worker_lives, formed, ended
};
Node node[2];
byte count, announced, known_lost;          /* the coordinator's; announced: what its messages say */
bool contributed[2], heard, coordinator_lives, down, gone;   /* the link: down, and never to come back */
byte faults = FAULTS, cuts = CUTS;

#define other (1 - me)
#define settled (node[0].formed && node[1].formed && node[0].joined == node[1].joined && node[0].joined == count)

inline announce() {
  d_step { count++; contributed[0] = false; contributed[1] = false; known_lost = node[1].lost }
#ifdef WITHOUT_RULE_11
  announced = count;
  node[0].told = count
#else
  node[0].told = count;                     /* stored before it is announced */
  announced = count
#endif
}

proctype Coordinator() {
  byte lost;
again:
  skip;
  d_step { count = 0; announced = 0; heard = false; contributed[0] = false; contributed[1] = false; lost = 0 }
  coordinator_lives = true;
  {
#ifdef WITHOUT_RULE_11
    count = node[0].told;
#else
    heard;                                  /* node 1 has said what it was told */
    d_step { count = (node[0].told > node[1].told -> node[0].told : node[1].told) }
#endif
    lost = node[0].lost;
    announce();
end_coordinator:
    do
    :: node[0].lost != lost -> lost = node[0].lost; announce()
    :: known_lost != node[1].lost && heard && !down -> announce()
    od
  } unless { !coordinator_lives || node[0].ended; if :: node[0].ended -> skip :: else -> goto again fi }
}

/* State in both directions, again and again; a message may be lost. */
proctype Link() {
end_link:
  do
  :: d_step { !down && coordinator_lives && !node[0].ended && !node[1].ended && !heard -> heard = true }
  :: d_step { !down && coordinator_lives && !node[0].ended && !node[1].ended && node[1].told < announced ->
              node[1].told = announced }
#ifndef WITHOUT_GIVING_UP
  :: d_step { (down || node[0].ended) && !node[1].ended -> node[1].ended = true }
  :: d_step { (down || node[1].ended) && !node[0].ended -> node[0].ended = true }
#endif
  od
}

proctype Worker(byte me) {
  byte mine;
again:
  skip;
  d_step { mine = 0; node[me].formed = false }
  {
    node[me].worker_lives;
    d_step { node[me].told > node[me].joined -> mine = node[me].told; node[me].joined = mine }
    d_step { mine == count -> contributed[me] = true }                 /* the rendezvous refuses all others */
    contributed[0] && contributed[1] && mine == count;
    node[me].formed = true;
end_formed:
    false
  } unless {
    (!node[me].worker_lives && mine != 0) || (node[me].told > mine && mine != 0) || node[me].ended;
    if
    :: node[me].ended -> skip
    :: else -> goto again
    fi
  }
}

proctype Faults(byte me) {
end_faults:
  do
  :: atomic { faults > 0 && node[me].worker_lives && node[me].joined > 0 -> faults--; node[me].worker_lives = false; node[me].formed = false }
  :: d_step { !node[me].worker_lives && coordinator_lives -> node[me].worker_lives = true; node[me].lost++ }
  :: d_step { me == 0 && faults > 0 && coordinator_lives && count > 0 ->
              faults--; coordinator_lives = false; node[0].worker_lives = false; node[0].formed = false }
  :: d_step { me == 1 && cuts > 0 && !down -> down = true; cuts-- }
  :: d_step { me == 1 && cuts > 0 && !down -> down = true; gone = true; cuts-- }
  :: d_step { me == 1 && down && !gone -> down = false }
  od
}

init {
  atomic {
    node[0].worker_lives = true; node[1].worker_lives = true; coordinator_lives = true;
    run Coordinator(); run Link(); run Worker(0); run Worker(1); run Faults(0); run Faults(1)
  }
  settled || (node[0].ended && node[1].ended)
}
