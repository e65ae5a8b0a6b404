/* SPDX-License-Identifier: MIT
 * CUDA: events, and host waits for what CUDA signals.
 *
 * How late a wait is: the kernel's last act is to write a word that another thread watches; late is
 * what passes between that and the return of the wait. How much of a core a wait takes: its
 * thread's own time over the wall's. */
#include "notified.h"
#include "raw_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncpoint/cuda.h>
#include <unistd.h>

typedef struct cuda_bench {
    const bench *b;
    raw_cuda raw;
    sp_cuda_context *context;
    CUevent event;
    /* A Vulkan timeline that CUDA signals. */
    sp_vk_semaphore *timeline;
    sp_cuda_semaphore *imported;
    uint64_t value;
    /* The thread that watches the word. */
    atomic_uint wanted, seen;
    atomic_bool stop;
    uint64_t seen_ns; /* written before `seen` */
} cuda_bench;

static void check(sp_status status, const char *what)
{
    bench_check(status == SP_OK, what);
}

static void *watch(void *argument)
{
    cuda_bench *c = argument;
    while (!atomic_load(&c->stop)) {
        unsigned wanted = atomic_load_explicit(&c->wanted, memory_order_acquire);
        if (wanted == atomic_load(&c->seen) || c->raw.words[RAW_CUDA_DONE] != wanted)
            continue;
        c->seen_ns = bench_now_ns();
        atomic_store_explicit(&c->seen, wanted, memory_order_release);
    }
    return NULL;
}

/* ---- What is waited for ---- */

typedef struct waited {
    const char *late, *cpu; /* names of the rows */
    uint64_t work_ns;
    size_t rounds;
    sp_point (*submit)(cuda_bench *c); /* behind the work */
    void (*wait_raw)(cuda_bench *c);
} waited;

static sp_point signal_timeline(cuda_bench *c)
{
    sp_point of_cuda = {0}, point = {0};
    check(sp_cuda_stream_signal_semaphore(c->context, c->raw.stream, c->imported, 0, &of_cuda),
          "sp_cuda_stream_signal_semaphore");
    c->value = of_cuda.value;
    check(sp_vk_timeline_point(c->timeline, of_cuda.value, &point), "sp_vk_timeline_point");
    sp_point_unref(&of_cuda);
    return point;
}

static void wait_timeline_raw(cuda_bench *c)
{
    VkResult result = raw_vk_wait(&c->b->raw_a, sp_vk_semaphore_handle(c->timeline), c->value);
    bench_check(result == VK_SUCCESS, "vkWaitSemaphores");
}

static sp_point record_event(cuda_bench *c)
{
    sp_point point = {0};
    bench_check(c->raw.event_record(c->event, c->raw.stream) == CUDA_SUCCESS, "cuEventRecord");
    check(sp_cuda_stream_signal(c->context, c->raw.stream, &point), "sp_cuda_stream_signal");
    return point;
}

static void wait_event_raw(cuda_bench *c)
{
    bench_check(c->raw.event_synchronize(c->event) == CUDA_SUCCESS, "cuEventSynchronize");
}

/* ---- How late, and at what price ---- */

typedef struct sample {
    double late_ns, cpu_percent;
} sample;

static sample wait_once(cuda_bench *c, const waited *w, bool raw)
{
    unsigned round = atomic_load(&c->wanted) + 1;
    raw_cuda_work(&c->raw, w->work_ns, round);
    sp_point point = w->submit(c);
    atomic_store_explicit(&c->wanted, round, memory_order_release);
    uint64_t start = bench_now_ns(), used = bench_thread_ns();
    if (raw)
        w->wait_raw(c);
    else
        check(sp_wait(&point), "sp_wait");
    bool done = c->raw.words[RAW_CUDA_DONE] == round;
    uint64_t end = bench_now_ns();
    used = bench_thread_ns() - used;
    sp_point_unref(&point);
    while (atomic_load_explicit(&c->seen, memory_order_acquire) != round)
        ;
    bench_check(done, "a wait ended before the work");
    return (sample){
        .late_ns = end > c->seen_ns ? (double)(end - c->seen_ns) : 0,
        .cpu_percent = 100 * (double)used / (double)(end - start),
    };
}

static void measure_wait(cuda_bench *c, const waited *w)
{
    double *late = calloc(2 * w->rounds, sizeof *late);
    double *cpu = calloc(2 * w->rounds, sizeof *cpu);
    bench_check(late && cpu, "out of memory");
    if (bench_wants(c->b, w->late) || bench_wants(c->b, w->cpu)) {
        for (size_t i = 0; i < 2 * w->rounds; i++) {
            size_t at = (i % 2) * w->rounds + i / 2;
            sample one = wait_once(c, w, i % 2);
            late[at] = one.late_ns;
            cpu[at] = one.cpu_percent;
        }
        bench_emit_medians(c->b, w->late, "ns", late, w->rounds);
        bench_emit_medians(c->b, w->cpu, "%", cpu, w->rounds);
    }
    free(late);
    free(cpu);
}

/* ---- The same through a reactor ---- */

/* Of a core: by the reactor's thread, from one callback to the next. */
static double notify_once(cuda_bench *c, sp_reactor *reactor, uint64_t work_ns, notified *n)
{
    unsigned round = atomic_load(&c->wanted) + 1;
    raw_cuda_work(&c->raw, work_ns, round);
    sp_point point = signal_timeline(c);
    n->word = &c->raw.words[RAW_CUDA_DONE];
    atomic_store_explicit(&c->wanted, round, memory_order_release);
    bench_notify(reactor, &point, n);
    sp_point_unref(&point);
    notified_wait(n);
    while (atomic_load_explicit(&c->seen, memory_order_acquire) != round)
        ;
    bench_check(n->seen_word == round, "a callback before the work");
    return n->at_ns > c->seen_ns ? (double)(n->at_ns - c->seen_ns) : 0;
}

static void measure_notified(cuda_bench *c, const char *name, sp_pace pace, uint64_t work_ns,
                             size_t rounds)
{
    char cpu[64];
    double *late = calloc(rounds, sizeof *late);
    notified first = {0}, last = {0};
    bench_check(late, "out of memory");
    if (bench_wants(c->b, name)) {
        sp_reactor *reactor = bench_reactor_create(pace);
        notify_once(c, reactor, work_ns, &first);
        for (size_t i = 0; i < rounds; i++)
            late[i] = notify_once(c, reactor, work_ns, &last);
        bench_emit_late(c->b, name, late, rounds, NULL);
        snprintf(cpu, sizeof cpu, "%s_cpu", name);
        const bench_row row = {.name = cpu,
                               .unit = "%",
                               .ours = 100 * (double)(last.thread_ns - first.thread_ns) /
                                       (double)(last.at_ns - first.at_ns),
                               .raw = -1,
                               .n = rounds};
        bench_emit(c->b, &row);
        bench_reactor_destroy(reactor);
    }
    free(late);
}

static void measure_all_notified(cuda_bench *c)
{
    const size_t many = c->b->scale.blocks, few = many / 4;
    measure_notified(c, "reactor.cuda_300us", SP_PACE_BALANCED, 300000, many);
    measure_notified(c, "reactor.cuda_20ms", SP_PACE_BALANCED, 20000000, few);
    measure_notified(c, "reactor.cuda_latency_300us", SP_PACE_LATENCY, 300000, many);
    measure_notified(c, "reactor.cuda_latency_20ms", SP_PACE_LATENCY, 20000000, few);
}

static void measure_waits(cuda_bench *c)
{
    const size_t many = c->b->scale.blocks, few = many / 4;
    const waited all[] = {
        {"cuda.late_timeline_300us", "cuda.cpu_timeline_300us", 300000, many, signal_timeline,
         wait_timeline_raw},
        {"cuda.late_timeline_20ms", "cuda.cpu_timeline_20ms", 20000000, few, signal_timeline,
         wait_timeline_raw},
        {"cuda.late_event_300us", "cuda.cpu_event_300us", 300000, many, record_event,
         wait_event_raw},
        {"cuda.late_event_20ms", "cuda.cpu_event_20ms", 20000000, few, record_event,
         wait_event_raw},
    };
    pthread_t thread;
    bench_check(pthread_create(&thread, NULL, watch, c) == 0, "no thread");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        measure_wait(c, &all[i]);
    measure_all_notified(c);
    atomic_store(&c->stop, true);
    pthread_join(thread, NULL);
}

/* ---- What takes nanoseconds ---- */

typedef struct probed {
    cuda_bench *c;
    sp_point point;
    sp_status expected;
} probed;

static void probe_ours(void *argument, size_t ops)
{
    const probed *p = argument;
    bench_check(bench_polls(&p->point, p->expected, ops), "sp_poll does not say what it should");
}

static void probe_raw(void *argument, size_t ops)
{
    const probed *p = argument;
    CUresult all = CUDA_SUCCESS;
    for (size_t i = 0; i < ops; i++)
        all |= p->c->raw.event_query(p->c->event);
    bench_check(all == CUDA_SUCCESS || all == CUDA_ERROR_NOT_READY, "cuEventQuery");
}

static void measure_probe(cuda_bench *c, const char *name, sp_status expected)
{
    if (!bench_wants(c->b, name))
        return;
    if (expected == SP_PENDING)
        raw_cuda_hold(&c->raw);
    probed p = {.c = c, .point = record_event(c), .expected = expected};
    if (expected == SP_OK)
        check(sp_wait(&p.point), "sp_wait");
    bench_batches(c->b, name, probe_ours, probe_raw, &p);
    c->raw.words[RAW_CUDA_RELEASE] = 1;
    sp_point_unref(&p.point);
    c->raw.stream_synchronize(c->raw.stream);
}

static void record_ours(void *argument, size_t ops)
{
    cuda_bench *c = argument;
    sp_status wrong = SP_OK;
    for (size_t i = 0; i < ops; i++) {
        sp_point point;
        wrong |= sp_cuda_stream_signal(c->context, c->raw.stream, &point);
        sp_point_unref(&point);
    }
    bench_check(wrong == SP_OK, "sp_cuda_stream_signal");
}

static void record_raw(void *argument, size_t ops)
{
    const cuda_bench *c = argument;
    CUresult wrong = CUDA_SUCCESS;
    for (size_t i = 0; i < ops; i++)
        wrong |= c->raw.event_record(c->event, c->raw.stream);
    bench_check(wrong == CUDA_SUCCESS, "cuEventRecord");
}

static void let_stream_run(void *argument)
{
    const cuda_bench *c = argument;
    c->raw.stream_synchronize(c->raw.stream);
}

/* ---- Together ---- */

static void share_timeline(cuda_bench *c)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof desc,
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
        .export_types = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    int fd = -1;
    sp_point origin = {0};
    check(sp_vk_semaphore_create(c->b->a.sp_device, &desc, &c->timeline), "a shared timeline");
    check(sp_vk_semaphore_export(c->timeline, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &fd),
          "sp_vk_semaphore_export");
    check(sp_vk_timeline_point(c->timeline, 0, &origin), "sp_vk_timeline_point");
    const sp_cuda_semaphore_import_desc import = {.size = sizeof import,
                                                  .type = SP_CUDA_TIMELINE_FD,
                                                  .fd = fd,
                                                  .adopt = true,
                                                  .origin = &origin};
    check(sp_cuda_semaphore_import(c->context, &import, &c->imported), "sp_cuda_semaphore_import");
    sp_point_unref(&origin);
}

static bool is_nvidia(const bench *b)
{
    return strcmp(b->driver, "NVIDIA") == 0;
}

void bench_cuda(const bench *b)
{
    cuda_bench c = {.b = b};
    const sp_cuda_context_desc desc = {.size = sizeof desc};
    if (!is_nvidia(b) || !raw_cuda_open(&c.raw))
        return;
    check(sp_cuda_context_create(&desc, &c.context), "sp_cuda_context_create");
    bench_check(c.raw.event_create(&c.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS,
                "cuEventCreate");
    share_timeline(&c);
    measure_probe(&c, "cuda.probe_reached", SP_OK);
    measure_probe(&c, "cuda.probe_pending", SP_PENDING);
    if (bench_wants(b, "cuda.record"))
        bench_bursts(b, "cuda.record", record_ours, record_raw, let_stream_run, &c);
    measure_waits(&c);
    sp_cuda_semaphore_unref(c.imported);
    sp_vk_semaphore_unref(c.timeline);
    c.raw.event_destroy(c.event);
    check(sp_cuda_context_destroy(c.context, SP_FOREVER), "sp_cuda_context_destroy");
    raw_cuda_close(&c.raw);
}
