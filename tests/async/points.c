/* SPDX-License-Identifier: MIT
 *
 * Notifications for many points: values of one primitive, parts of chains, slots inside slots.
 */
#include "async_case.h"

#include <stdlib.h>
#include <string.h>

/* ---- Values ---- */

/* W7: each at its own value, whatever the order they were asked in. */
static void listen_to_values(source *from, const uint64_t *values, unsigned count,
                             listener *listeners)
{
    sp_point any = source_point(from, 1);
    for (unsigned i = 0; i < count; i++) {
        sp_point point = {0};
        CHECK_STATUS(sp_point_at(&any, values[i], &point), SP_OK);
        listen(&listeners[i], &point, SP_FOREVER);
        sp_point_unref(&point);
    }
    sp_point_unref(&any);
}

TEST(W7_each_at_its_own_value)
{
    const uint64_t values[] = {100, 99, 1, 50, 75, 2, 100, 0};
    const uint64_t steps[] = {1, 2, 49, 50, 74, 98, 99, 100};
    for (EACH_SORT(which)) {
        listener listeners[COUNT_OF(values)] = {0};
        if (!sort_counts(which))
            continue;
        source from = source_make(which);
        listen_to_values(&from, values, COUNT_OF(values), listeners);
        for (unsigned step = 0; step < COUNT_OF(steps); step++) {
            source_signal(&from, steps[step]);
            go_on_ms(5);
            for (unsigned i = 0; i < COUNT_OF(values); i++) {
                if (values[i] <= steps[step])
                    CHECK_HEARD(&listeners[i], SP_OK);
                else
                    CHECK_EQUAL(listener_calls(&listeners[i]), 0);
            }
        }
        source_end(&from);
    }
}

/* The highest value there is. */
TEST(last_value)
{
    const uint64_t values[] = {UINT64_MAX - 1};
    for (EACH_SORT(which)) {
        listener one = {0};
        if (!sort_counts(which))
            continue;
        source from = source_make(which);
        listen_to_values(&from, values, 1, &one);
        source_signal(&from, UINT64_MAX - 2);
        go_on_ms(5);
        CHECK_EQUAL(listener_calls(&one), 0);
        source_signal(&from, UINT64_MAX - 1);
        CHECK_HEARD(&one, SP_OK);
        source_end(&from);
    }
}

/* ---- Numbers ---- */

static const unsigned numbers[] = {1, 63, 64, 65, 5000};

/* Of one primitive, the first half reached first. */
static void many_values(sort which, unsigned count)
{
    source from = source_make(which);
    listener *listeners = calloc(count, sizeof(*listeners));
    for (unsigned i = 0; i < count; i++) {
        sp_point point = source_point(&from, count - i);
        listen(&listeners[i], &point, SP_FOREVER);
        sp_point_unref(&point);
    }
    if (count > 1) {
        source_signal(&from, count / 2);
        for (unsigned i = count - count / 2; i < count; i++)
            CHECK_HEARD(&listeners[i], SP_OK);
    }
    for (unsigned i = 0; i < count - count / 2; i++)
        CHECK_EQUAL(listener_calls(&listeners[i]), 0);
    source_signal(&from, count);
    for (unsigned i = 0; i < count; i++)
        CHECK_HEARD(&listeners[i], SP_OK);
    free(listeners);
    source_end(&from);
}

TEST(many_values_of_one_primitive)
{
    for (unsigned i = 0; i < COUNT_OF(numbers); i++) {
        many_values(SORT_HOST, numbers[i]);
        many_values(SORT_ARM, numbers[i]);
        many_values(SORT_PROBE, numbers[i]);
    }
}

/* Each of a primitive of its own, signalled in a mixed order. */
static void many_primitives(const sort *sorts, unsigned sort_count, unsigned count)
{
    source *from = calloc(count, sizeof(*from));
    listener *listeners = calloc(count, sizeof(*listeners));
    for (unsigned i = 0; i < count; i++) {
        from[i] = source_make(sorts[i % sort_count]);
        sp_point point = source_point(&from[i], 1);
        listen(&listeners[i], &point, SP_FOREVER);
        sp_point_unref(&point);
    }
    go_on_ms(2);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQUAL(listener_calls(&listeners[i]), 0);
    for (unsigned i = 0; i < count; i++)
        source_signal(&from[(i * 7919u) % count], 1); /* 7919 is prime: each once */
    for (unsigned i = 0; i < count; i++) {
        CHECK_HEARD(&listeners[i], SP_OK);
        source_end(&from[i]);
    }
    free(listeners);
    free(from);
}

TEST(many_primitives_of_one_sort)
{
    for (EACH_SORT(which)) {
        for (unsigned i = 0; i < COUNT_OF(numbers) - 1; i++)
            many_primitives(&which, 1, numbers[i]);
    }
}

TEST(thousands_of_primitives_of_all_sorts)
{
    sort sorts[SORT_COUNT];
    for (EACH_SORT(which))
        sorts[which] = which;
    many_primitives(sorts, SORT_COUNT, 5000);
}

TEST(thousands_of_timelines)
{
    const sort host = SORT_HOST;
    many_primitives(&host, 1, 5000);
}

TEST(thousands_that_are_polled)
{
    const sort polled[] = {SORT_PROBE, SORT_ONE_SHOT_PROBE};
    many_primitives(polled, COUNT_OF(polled), 5000);
}

/* ---- Chains ---- */

static sp_point chain_of(const sp_point *first, const sp_point *then)
{
    sp_point chain = {0};
    CHECK_STATUS(sp_chain(first, then, &chain), SP_OK);
    return chain;
}

/* Both parts, of any sorts, in either order. */
static void chain_in_order(sort one, sort other, bool second_first)
{
    listener heard = {0};
    source from[2] = {source_make(one), source_make(other)};
    sp_point parts[2] = {source_point(&from[0], 1), source_point(&from[1], 1)};
    sp_point chain = chain_of(&parts[0], &parts[1]);
    listen(&heard, &chain, SP_FOREVER);
    source_signal(&from[second_first], 1);
    go_on_ms(2);
    CHECK_EQUAL(listener_calls(&heard), 0);
    source_signal(&from[!second_first], 1);
    CHECK_HEARD(&heard, SP_OK);
    sp_point_unref(&chain);
    for (unsigned i = 0; i < 2; i++) {
        sp_point_unref(&parts[i]);
        source_end(&from[i]);
    }
}

TEST(chains_of_any_two)
{
    for (EACH_SORT(one)) {
        for (EACH_SORT(other)) {
            chain_in_order(one, other, false);
            chain_in_order(one, other, true);
        }
    }
}

TEST(chain_whose_part_fails)
{
    for (unsigned failing = 0; failing < 2; failing++) {
        listener heard = {0};
        source from[2] = {source_make(SORT_HOST), source_make(SORT_HOST)};
        sp_point parts[2] = {source_point(&from[0], 1), source_point(&from[1], 1)};
        sp_point chain = chain_of(&parts[0], &parts[1]);
        listen(&heard, &chain, SP_FOREVER);
        if (failing == 1) {
            source_signal(&from[0], 1);
            go_on_ms(5);
            CHECK_EQUAL(listener_calls(&heard), 0);
        }
        source_fail(&from[failing]); /* the first alone is enough */
        CHECK_HEARD(&heard, SP_ERROR_FAILED);
        CHECK_STATUS(heard.cause, SP_ERROR_PEER_CLOSED);
        CHECK(strstr(heard.message, "it is gone") != NULL);
        sp_point_unref(&chain);
        for (unsigned i = 0; i < 2; i++) {
            sp_point_unref(&parts[i]);
            source_end(&from[i]);
        }
    }
}

TEST(long_chain)
{
    enum { LINKS = 1000 };
    listener heard = {0}, impatient = {0};
    source from = source_make(SORT_HOST), polled = source_make(SORT_PROBE);
    sp_point chain = source_point(&from, 1);
    for (unsigned i = 2; i <= LINKS; i++) {
        sp_point link = source_point(i % 2 ? &from : &polled, i);
        sp_point longer = chain_of(&chain, &link);
        sp_point_unref(&chain);
        sp_point_unref(&link);
        chain = longer;
    }
    listen(&heard, &chain, SP_FOREVER);
    listen(&impatient, &chain, 5 * MS);
    CHECK_HEARD(&impatient, SP_TIMEOUT);
    for (unsigned i = 100; i < LINKS; i += 100) {
        source_signal(&from, i);
        source_signal(&polled, i);
        go_on_ms(1);
        CHECK_EQUAL(listener_calls(&heard), 0);
    }
    source_signal(&from, LINKS);
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&heard), 0);
    source_signal(&polled, LINKS);
    CHECK_HEARD(&heard, SP_OK);
    sp_point_unref(&chain);
    source_end(&from);
    source_end(&polled);
}

/* ---- Slots ---- */

typedef struct promise {
    sp_slot *slot;
    sp_point point;
} promise;

static promise make_promise(void)
{
    promise made = {0};
    CHECK_STATUS(sp_slot_create(&made.slot), SP_OK);
    CHECK_STATUS(sp_slot_point(made.slot, &made.point), SP_OK);
    return made;
}

static void drop_promise(promise *self)
{
    sp_point_unref(&self->point);
    sp_slot_destroy(self->slot);
}

TEST(slot_set_late_to_what_is_reached_later)
{
    for (EACH_SORT(which)) {
        late_signal late;
        listener heard = {0};
        promise slot = make_promise();
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        if (which == SORT_SLOT) /* a slot cannot be set to one that is not set */
            CHECK_STATUS(sp_slot_set(from.slot, &slot.point), SP_ERROR_INVALID_STATE);
        listen(&heard, &slot.point, SP_TIMEOUT_DEFAULT);
        go_on_ms(2);
        if (which == SORT_SLOT) {
            CHECK_STATUS(sp_slot_set(from.slot, &(sp_point){0}), SP_OK);
            CHECK_STATUS(sp_slot_set(slot.slot, &point), SP_OK);
            CHECK_HEARD(&heard, SP_OK);
        } else {
            CHECK_STATUS(sp_slot_set(slot.slot, &point), SP_OK);
            signal_late(&late, &from, 1);
            CHECK_HEARD(&heard, SP_OK);
            join_not_early(&late);
        }
        sp_point_unref(&point);
        source_end(&from);
        drop_promise(&slot);
    }
}

TEST(slot_set_to_what_is_over)
{
    for (unsigned failed = 0; failed < 2; failed++) {
        listener heard = {0};
        promise slot = make_promise();
        source from = source_make(SORT_HOST);
        sp_point point = source_point(&from, 1);
        if (failed)
            source_fail(&from);
        else
            source_signal(&from, 1);
        listen(&heard, &slot.point, SP_FOREVER);
        go_on_ms(5);
        CHECK_EQUAL(listener_calls(&heard), 0);
        CHECK_STATUS(sp_slot_set(slot.slot, &point), SP_OK);
        CHECK_HEARD(&heard, failed ? SP_ERROR_FAILED : SP_OK);
        CHECK_STATUS(heard.cause, failed ? SP_ERROR_PEER_CLOSED : SP_OK);
        sp_point_unref(&point);
        source_end(&from);
        drop_promise(&slot);
    }
}

/* A chain of two slots, the second set first. */
TEST(chain_of_slots)
{
    listener heard = {0}, impatient = {0};
    promise slots[2] = {make_promise(), make_promise()};
    source from[2] = {source_make(SORT_PROBE), source_make(SORT_HOST)};
    sp_point points[2] = {source_point(&from[0], 1), source_point(&from[1], 1)};
    sp_point chain = chain_of(&slots[0].point, &slots[1].point);
    listen(&heard, &chain, SP_FOREVER);
    listen(&impatient, &chain, MS);
    CHECK_HEARD(&impatient, SP_TIMEOUT);
    CHECK_STATUS(sp_slot_set(slots[1].slot, &points[1]), SP_OK);
    source_signal(&from[1], 1);
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&heard), 0);
    CHECK_STATUS(sp_slot_set(slots[0].slot, &points[0]), SP_OK);
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&heard), 0);
    source_signal(&from[0], 1);
    CHECK_HEARD(&heard, SP_OK);
    sp_point_unref(&chain);
    for (unsigned i = 0; i < 2; i++) {
        sp_point_unref(&points[i]);
        source_end(&from[i]);
        drop_promise(&slots[i]);
    }
}
