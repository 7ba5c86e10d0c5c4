/* The two orders of loads and stores that processes rely on while both run, on a machine that keeps no order by itself
 * (stores become visible in any order, loads are done in any order): what release, acquire and barriers are there for.
 *
 * MODEL 1: data, then the word that says that they are whole (rules 4, 5, 9, 12, 16). MODEL 2: before-image, flag,
 * overwrite, against data, flag, image (rule 19). What a killed process has stored is seen by its successor in whatever
 * order: the kernel's switch away from it is a barrier. -DWITHOUT_name leaves one out. */

#ifndef MODEL
#define MODEL 2
#endif

#define OLD 1
#define NEW 2

bool issued[5], seen[5];                    /* the writer's stores, in the order of its program */
byte data = OLD, more = OLD, image, word;   /* memory, as others see it */

#define earlier_seen(i) (((i) < 1 || seen[0]) && ((i) < 2 || seen[1]) && ((i) < 3 || seen[2]) && ((i) < 4 || seen[3]))

#if MODEL == 1
#define STORE_0 data = NEW
#define STORE_1 more = NEW
#define STORE_2 word = NEW
#define STORE_3 skip
#define WORD 2
#define LAST 2
#else
#define STORE_0 image = OLD
#define STORE_1 word = NEW
#define STORE_2 data = NEW
#define STORE_3 more = NEW
#define WORD 1
#define LAST 3
#endif
#ifdef WITHOUT_RELEASE
#define may_be_seen(i) (issued[i] && !seen[i])
#else
#define may_be_seen(i) (issued[i] && !seen[i] && ((i) != WORD || earlier_seen(i)))
#endif

proctype Writer() {
  issued[0] = true;
  issued[1] = true;
#if MODEL == 2 && !defined(WITHOUT_BARRIER_OF_WRITER)
  seen[0] && seen[1];
#endif
  issued[2] = true;
#if MODEL == 2
  issued[3] = true
#endif
}

proctype Memory() {
  do
  :: atomic { may_be_seen(0) -> STORE_0; seen[0] = true }
  :: atomic { may_be_seen(1) -> STORE_1; seen[1] = true }
  :: atomic { may_be_seen(2) -> STORE_2; seen[2] = true }
#if MODEL == 2
  :: atomic { may_be_seen(3) -> STORE_3; seen[3] = true }
#endif
  :: seen[0] && seen[1] && seen[2] && (LAST == 2 || seen[3]) -> break
  od
}

#if MODEL == 1
/* Waits for the word, then reads: without acquire, it may have read before. */
proctype Reader() {
  byte one, two;
  if
#ifdef WITHOUT_ACQUIRE
  :: one = data; word == NEW; two = more
#endif
  :: word == NEW; one = data; two = more
  :: word == NEW; two = more; one = data
  fi;
  assert(one == NEW && two == NEW)
}
#else
/* Reads, then looks at the flag: without the barrier, it may have looked before. */
proctype Reader() {
  byte one, two, flag;
  if
  :: one = data; two = more; flag = word
  :: two = more; one = data; flag = word
#ifdef WITHOUT_BARRIER_OF_READER
  :: flag = word; one = data; two = more
  :: one = data; flag = word; two = more
#endif
  fi;
  if
  :: flag == NEW -> one = image; two = image
  :: else
  fi;
  assert(one == OLD && two == OLD)
}
#endif

init { atomic { run Writer(); run Memory(); run Reader() } }
