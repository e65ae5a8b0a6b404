/* SPDX-License-Identifier: MIT */
#include "demo_report.h"

#include "commands.h"
#include "demo_sheet.h"
#include "demo_stats.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

static const char latency_meaning[] =
    "from the producer's signal submit, behind up to 3 frames of rendering, "
    "to the consumer's host seeing its gate passed";

/* What the report is made of, beyond the result itself. */
struct facts {
    double seconds;
    double frames_per_second;
    struct demo_stats latency;
    bool handles_flat;
    int exit_status;
    char verdict[200];
};

static bool is_flat(const struct demo_handles *handles)
{
    return handles->before == handles->after;
}

static void judge_break(const struct demo_report *report, struct facts *facts)
{
    const struct demo_result *result = report->result;
    const bool no_wait = report->options->broken == DEMO_BREAK_NO_WAIT;
    const bool caught =
        no_wait ? result->torn_frames > 0 : result->withheld_timed_out && result->withheld_resolved;
    facts->exit_status = caught ? TOOL_EXIT_BAD : TOOL_EXIT_FAILED;
    if (!caught) {
        snprintf(facts->verdict, sizeof facts->verdict,
                 "NOT caught: what was left out did no harm");
    } else if (no_wait) {
        snprintf(facts->verdict, sizeof facts->verdict, "caught: %u torn frames",
                 result->torn_frames);
    } else {
        snprintf(facts->verdict, sizeof facts->verdict,
                 "caught: frame %u's signal did not come, the wait ended with SP_TIMEOUT after "
                 "%.1f s, and nothing was copied before the late signal",
                 DEMO_WITHHELD_FRAME, (double)DEMO_WITHHELD_WAIT_NS / 1e9);
    }
}

static void judge(const struct demo_report *report, struct facts *facts)
{
    const struct demo_result *result = report->result;
    const char *bad = NULL;
    if (result->torn_frames > 0) {
        bad = "torn frames";
    } else if (result->frames != report->options->frames) {
        bad = "frames are missing";
    } else if (!facts->handles_flat) {
        bad = "handles were left open";
    } else if (result->validation_messages > 0) {
        bad = "the validation layer complains";
    }
    facts->exit_status = bad ? TOOL_EXIT_BAD : TOOL_EXIT_GOOD;
    snprintf(facts->verdict, sizeof facts->verdict, "%s%s", bad ? "BAD: " : "good", bad ? bad : "");
}

static struct facts find_facts(const struct demo_report *report)
{
    const struct demo_result *result = report->result;
    struct facts facts = {
        .seconds = (double)result->elapsed_ns / 1e9,
        .latency = demo_stats_of(result->latencies_ns, result->latency_count),
        .handles_flat = is_flat(&result->consumer_handles) && is_flat(&result->producer_handles),
    };
    /* The first frame starts the clock. */
    if (result->frames > 1)
        facts.frames_per_second = (result->frames - 1) / facts.seconds;
    if (report->options->broken) {
        judge_break(report, &facts);
    } else {
        judge(report, &facts);
    }
    return facts;
}

static void print_mode(const struct demo_report *report)
{
    if (report->one_process_because) {
        printf("mode      one process, two threads on one queue, because %s\n",
               report->one_process_because);
    } else {
        printf("mode      two processes: images and semaphores cross as opaque fds\n");
    }
    if (report->options->broken == DEMO_BREAK_NO_WAIT) {
        printf("broken    the consumer does not wait; the producer is slowed down\n");
    } else if (report->options->broken == DEMO_BREAK_NO_SIGNAL) {
        printf("broken    the producer does not signal frame %u\n", DEMO_WITHHELD_FRAME);
    } else if (report->options->slow) {
        printf("slow      each frame is delayed on the producer's GPU\n");
    }
}

static void print_handles(const struct demo_report *report)
{
    const struct demo_handles *consumer = &report->result->consumer_handles;
    const struct demo_handles *producer = &report->result->producer_handles;
    if (report->one_process_because) {
        printf("handles   %u open before, %u after\n", consumer->before, consumer->after);
    } else {
        printf("handles   consumer: %u open before, %u after; producer: %u before, %u after\n",
               consumer->before, consumer->after, producer->before, producer->after);
    }
}

static void print_report(const struct demo_report *report, const struct facts *facts)
{
    const struct demo_result *result = report->result;
    printf("device    %s; driver: %s\n", report->gpu->device_name, report->gpu->driver_name);
    print_mode(report);
    printf("frames    %u of %u; after the first one %.2f s, %.1f frames/s\n", result->frames,
           report->options->frames, facts->seconds, facts->frames_per_second);
    if (result->latency_count > 0) {
        printf("hand-off  median %.3f ms, p99 %.3f ms: %s\n", (double)facts->latency.median / 1e6,
               (double)facts->latency.p99 / 1e6, latency_meaning);
    }
    printf("torn      %u frames (%" PRIu64 " pixels are not what their frame must be)\n",
           result->torn_frames, result->torn_pixels);
    print_handles(report);
    if (report->options->validate)
        printf("validate  %u messages\n", result->validation_messages);
    printf("files     %s/demo.png, %s/demo.json\n", report->options->out, report->options->out);
    printf("%s\n", facts->verdict);
}

static json_t *handles_json(const struct demo_handles *handles)
{
    return json_pack("{s:i, s:i}", "before", (int)handles->before, "after", (int)handles->after);
}

static const char *break_name(enum demo_break broken)
{
    static const char *const names[] = {
        [DEMO_BREAK_NOTHING] = NULL,
        [DEMO_BREAK_NO_WAIT] = "no-wait",
        [DEMO_BREAK_NO_SIGNAL] = "no-signal",
    };
    return names[broken];
}

static json_t *latency_json(const struct demo_result *result, const struct facts *facts)
{
    if (result->latency_count == 0)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:i}", "what", latency_meaning, "median_ns",
                     (json_int_t)facts->latency.median, "p99_ns", (json_int_t)facts->latency.p99,
                     "n", (int)result->latency_count);
}

static json_t *report_json(const struct demo_report *report, const struct facts *facts)
{
    const struct demo_options *options = report->options;
    const struct demo_result *result = report->result;
    json_t *validation =
        options->validate ? json_integer(result->validation_messages) : json_null();
    return json_pack(
        "{s:s, s:s?, s:s, s:s, s:s?, s:b, s:i, s:i, s:f, s:f, s:o, s:i, s:I, s:{s:o, s:o}, s:o, "
        "s:s, s:i}",
        "mode", report->one_process_because ? "one-process" : "two-process", "one_process_because",
        report->one_process_because, "device", report->gpu->device_name, "driver",
        report->gpu->driver_name, "break", break_name(options->broken), "slow", (int)options->slow,
        "frames_expected", (int)options->frames, "frames", (int)result->frames, "seconds",
        facts->seconds, "frames_per_second", facts->frames_per_second, "handoff_latency",
        latency_json(result, facts), "torn_frames", (int)result->torn_frames, "torn_pixels",
        (json_int_t)result->torn_pixels, "open_handles", "consumer",
        handles_json(&result->consumer_handles), "producer",
        handles_json(&result->producer_handles), "validation_messages", validation, "verdict",
        facts->verdict, "exit_status", facts->exit_status);
}

static bool write_json(const struct demo_report *report, const struct facts *facts,
                       const char *path)
{
    json_t *root = report_json(report, facts);
    const bool ok =
        root && json_dump_file(root, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
    json_decref(root);
    if (!ok)
        tool_error("%s: cannot be written", path);
    return ok;
}

int demo_report(const struct demo_report *report)
{
    const struct facts facts = find_facts(report);
    char png[4096];
    char json[4096];
    snprintf(png, sizeof png, "%s/demo.png", report->options->out);
    snprintf(json, sizeof json, "%s/demo.json", report->options->out);
    const bool written =
        demo_sheet_write(&report->result->sheet, png) && write_json(report, &facts, json);
    print_report(report, &facts);
    return written ? facts.exit_status : TOOL_EXIT_FAILED;
}
