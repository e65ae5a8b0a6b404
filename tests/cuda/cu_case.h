/* SPDX-License-Identifier: MIT
 *
 * What the CUDA test programs share: a context of the target's, with the library on it.
 */
#ifndef TESTS_CUDA_CU_CASE_H
#define TESTS_CUDA_CU_CASE_H

#include "support/census.h"
#include "support/cu_fixture.h"
#include "support/test.h"
#include "support/threads.h"

extern cu_context ctx;
extern cu_word gate; /* what streams wait for: closed while it is below what they ask for */

void start(void);  /* opens both */
void finish(void); /* opens the gate for all, closes everything, with all that is checked then */

/* Everything on the stream from now on waits until gate_open(value). */
void gate_close(CUstream stream, uint32_t value);
void gate_open(uint32_t value);

/* gate_open(value) on a thread, DELAY_MS from now. */
typedef struct late_open {
    worker worker;
    uint32_t value;
    flag sent;
} late_open;
void open_late(late_open *late, uint32_t value);
void join_not_early(late_open *late);

sp_point stream_point(CUstream stream);
unsigned calls(const char *name); /* of the double */

#endif
