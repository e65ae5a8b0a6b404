/* SPDX-License-Identifier: MIT
 *
 * Part of ticket.pml: what there is, as in src/async/reactor.h, and witnesses of what comes of it.
 */

/* enum SP_TICKET_*; generation and state in one word. */
#define SP_TICKET_FREE 0
#define SP_TICKET_PENDING 1
#define SP_TICKET_CANCELLED 2
#define SP_TICKET_CALLING 3
#define SP_TICKET_DONE 4
#define WORD(generation, state) ((generation) * 8 + (state))
#define STATE(word) ((word) & 7)
#define GENERATION(word) ((word) >> 3)

#define SP_TICKET_KEPT 1
#define SP_TICKET_RELEASED 2

/* sp_reactor_ticket. Number 0 is none. `u` is the union: a link of the intake, a node of a heap, or
 * the failure. */
byte word[SLOTS + 1];
byte next[SLOTS + 1];
byte u[SLOTS + 1];
byte flags[SLOTS + 1];
bit status_cancelled[SLOTS + 1];
bit filed[SLOTS + 1]; /* in a source, or among the deadlines */

/* sp_inbox, and the slab's list: under the lock. */
byte intake_first, intake_last, cancelled, free_list;
bool ending;

/* The dispatcher's. */
byte due_first, due_last, batch_intake, batch_cancelled;

/* Witnesses: what a link is used for now, which ticket has the slot, and what became of each. */
#define NOTHING 0
#define FREE 1
#define CANCELLED 2
#define DUE 3
#define INTAKE 4
#define HEAP 5
#define FAILURE 6
byte use_of_next[SLOTS + 1];
byte use_of_u[SLOTS + 1];
byte holder[SLOTS + 1];
byte given;
byte number_of[TICKETS];
byte generation_of[TICKETS];
bit reaches[TICKETS];  /* it will be reached, or out of time */
bit granted[TICKETS];  /* somebody won it for CANCELLED */
bit resolved[TICKETS]; /* the dispatcher won it for another result */
bit called[TICKETS];
bit returned[TICKETS];
bit kept[TICKETS];     /* of sp_point_fd() */
bit released[TICKETS]; /* sp_point_fd_release() was SP_OK */
bit raised[TICKETS];   /* the handle is readable */
byte threads_over;
bool is_over;
