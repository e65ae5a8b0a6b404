/* SPDX-License-Identifier: MIT
 *
 * The poller: asks the primitives that cannot tell, one after the other, and rests in between for so
 * long that all of it takes the share of a core that the pace allows.
 */
#include "async/reactor.h"

#define FEW 64u      /* for so many primitives a larger share is worth it                      */
#define AT_ONCE 512u /* so many are asked before others get their turn                         */

/* What falling asleep and waking up take of a core is 5 to 25 us, and on some virtual machines most of
 * what polling costs: it is measured, with a limit, since other work is measured with it. */
#define WAKE_UP_MOST 30000u
#define WAKE_UP_PART 8

/* One part of a core in so many; the shortest rest, and the longest one, so that probes which take long
 * do not make the others wait for ever. */
typedef struct pace {
    uint64_t few, many;
    uint64_t shortest_ns, longest_of_few_ns, longest_ns;
} pace;

#define US UINT64_C(1000)

static const pace paces[] = {
    [SP_PACE_BALANCED] = {30, 50, 100 * US, 250 * US, 20000 * US},
    [SP_PACE_LATENCY] = {8, 8, 20 * US, 60 * US, 5000 * US},
    [SP_PACE_POWER] = {200, 200, 1000 * US, 4000 * US, 200000 * US},
};

void sp_poller_add(sp_reactor *reactor, uint32_t number)
{
    sp_poller *poller = &reactor->poller;
    if (poller->ring.count == 0)
        poller->next_ns = sp_os_now_ns() + paces[reactor->pace].shortest_ns;
    sp_ring_add(reactor, &poller->ring, number);
}

void sp_poller_remove(sp_reactor *reactor, uint32_t number)
{
    sp_ring_remove(reactor, &reactor->poller.ring, number);
}

static uint64_t limit(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static void rest(sp_reactor *reactor, uint64_t work_ns)
{
    sp_poller *poller = &reactor->poller;
    const pace *own = &paces[reactor->pace];
    bool few = poller->ring.count <= FEW;
    uint64_t rest_ns = (work_ns + poller->wake_up_ns) * (few ? own->few : own->many);
    uint64_t longest_ns = few ? own->longest_of_few_ns : own->longest_ns;
    poller->next_ns = sp_os_now_ns() + limit(rest_ns, own->shortest_ns, longest_ns);
}

static void note_wake_up(sp_poller *poller, uint64_t cpu_ns)
{
    uint64_t sample = limit(cpu_ns - poller->cpu_ns, 0, WAKE_UP_MOST);
    poller->wake_up_ns = (poller->wake_up_ns * (WAKE_UP_PART - 1) + sample) / WAKE_UP_PART;
}

void sp_poller_run(sp_reactor *reactor, uint64_t now_ns)
{
    sp_poller *poller = &reactor->poller;
    if (poller->ring.count == 0 || now_ns < poller->next_ns)
        return;
    uint64_t before = sp_os_thread_cpu_ns();
    note_wake_up(poller, before);
    uint32_t count = poller->ring.count;
    uint32_t turns = count < AT_ONCE ? count : AT_ONCE;
    while (turns-- && poller->ring.count) {
        uint32_t number = poller->ring.first;
        poller->ring.first = sp_source_at(reactor, number)->next_in_ring;
        sp_source_look(reactor, number);
    }
    poller->cpu_ns = sp_os_thread_cpu_ns();
    rest(reactor, poller->cpu_ns - before);
}
