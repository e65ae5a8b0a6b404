/* SPDX-License-Identifier: MIT
 *
 * The two hooks of the per-frame contract, and the synchronizers that need no API.
 */
#include "synchronizer.h"

#include <stdlib.h>

const char *sp_mechanism_name(sp_mechanism mechanism)
{
    switch (mechanism) {
    case SP_MECHANISM_NONE:
        return "none";
    case SP_MECHANISM_IMPLICIT_GL_FLUSH:
        return "implicit-gl-flush";
    case SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE:
        return "explicit-external-semaphore";
    case SP_MECHANISM_EXPLICIT_FENCE:
        return "explicit-fence";
    default:
        return "unknown";
    }
}

const char *sp_frame_kind_name(sp_frame_kind kind)
{
    switch (kind) {
    case SP_FRAME_VULKAN_OPAQUE_FD:
        return "vulkan-opaque-fd";
    case SP_FRAME_DMA_BUF:
        return "dma-buf";
    case SP_FRAME_D3D12_SHARED:
        return "d3d12-shared";
    case SP_FRAME_D3D11_SHARED:
        return "d3d11-shared";
    case SP_FRAME_METAL_IOSURFACE:
        return "metal-iosurface";
    case SP_FRAME_GL_TEXTURE:
        return "gl-texture";
    default:
        return "unknown";
    }
}

sp_synchronizer *sp_synchronizer_allocate(size_t size, const sp_synchronizer_ops *ops)
{
    sp_synchronizer *synchronizer = calloc(1, size);
    if (!synchronizer) {
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "%s synchronizer: out of memory", ops->name);
        return NULL;
    }
    sp_os_watch_forks();
    synchronizer->ops = ops;
    synchronizer->fork_generation = sp_fork_generation;
    return synchronizer;
}

static sp_status create(const sp_synchronizer_ops *ops, sp_synchronizer **out)
{
    sp_synchronizer *synchronizer = sp_synchronizer_allocate(sizeof(*synchronizer), ops);
    if (!synchronizer)
        return SP_ERROR_OUT_OF_MEMORY;
    *out = synchronizer;
    return SP_OK;
}

sp_status sp_synchronizer_create_noop(sp_synchronizer **out)
{
    static const sp_synchronizer_ops ops = {.name = "no-op", .takes = SP_TAKES_ALL};
    SP_CHECK_ARGUMENT(out, "out is required");
    return create(&ops, out);
}

sp_status sp_synchronizer_create_implicit(sp_synchronizer **out)
{
    static const sp_synchronizer_ops ops = {
        .name = "implicit",
        .takes = SP_TAKES(SP_MECHANISM_NONE) | SP_TAKES(SP_MECHANISM_IMPLICIT_GL_FLUSH),
    };
    SP_CHECK_ARGUMENT(out, "out is required");
    return create(&ops, out);
}

static bool is_forked(const sp_synchronizer *synchronizer)
{
    return synchronizer->fork_generation != sp_fork_generation;
}

sp_status sp_synchronizer_destroy(sp_synchronizer *synchronizer, uint64_t timeout_ns)
{
    if (!synchronizer)
        return SP_OK;
    const sp_synchronizer_ops *ops = synchronizer->ops;
    bool forked = is_forked(synchronizer);
    if (!forked && ops->finish) {
        sp_status status = ops->finish(synchronizer, timeout_ns);
        if (status != SP_OK)
            return status;
    }
    if (ops->release)
        ops->release(synchronizer);
    free(synchronizer);
    return forked ? sp_fail_forked() : SP_OK;
}

static sp_status check_mechanism(const sp_synchronizer *synchronizer, sp_mechanism mechanism)
{
    const sp_synchronizer_ops *ops = synchronizer->ops;
    if (is_forked(synchronizer))
        return sp_fail_forked();
    if (ops->takes == SP_TAKES_ALL)
        return SP_OK;
    if ((unsigned)mechanism < 32 && (ops->takes & SP_TAKES(mechanism)))
        return SP_OK;
    return sp_fail(SP_ERROR_UNSUPPORTED_SYNCHRONIZATION,
                   "the %s synchronizer does not take %s: create one for the host's API, or let "
                   "the producer use another mechanism",
                   ops->name, sp_mechanism_name(mechanism));
}

static bool is_explicit(sp_mechanism mechanism)
{
    return mechanism != SP_MECHANISM_NONE && mechanism != SP_MECHANISM_IMPLICIT_GL_FLUSH;
}

sp_status sp_synchronizer_producer_complete(sp_synchronizer *synchronizer, const sp_frame *frame,
                                            sp_mechanism mechanism)
{
    SP_CHECK_ARGUMENT(synchronizer && frame, "synchronizer and frame are required");
    SP_CHECK_SIZE(frame);
    sp_status status = check_mechanism(synchronizer, mechanism);
    if (status == SP_OK && synchronizer->ops->producer_complete)
        status = synchronizer->ops->producer_complete(synchronizer, frame, mechanism);
    if (status == SP_OK && is_explicit(mechanism) && frame->adopt_fd && frame->semaphore_fd >= 0)
        sp_os_fd_close(frame->semaphore_fd);
    return status;
}

sp_status sp_synchronizer_consumer_ready(sp_synchronizer *synchronizer, const sp_texture *texture,
                                         sp_mechanism mechanism)
{
    SP_CHECK_ARGUMENT(synchronizer && texture, "synchronizer and texture are required");
    SP_CHECK_SIZE(texture);
    sp_status status = check_mechanism(synchronizer, mechanism);
    if (status != SP_OK || !synchronizer->ops->consumer_ready)
        return status;
    return synchronizer->ops->consumer_ready(synchronizer, texture, mechanism);
}

sp_status sp_synchronizer_last_gate(sp_synchronizer *synchronizer, sp_point *out)
{
    SP_CHECK_ARGUMENT(synchronizer && out, "synchronizer and out are required");
    if (is_forked(synchronizer))
        return sp_fail_forked();
    *out = sp_point_noop();
    if (synchronizer->ops->last_gate)
        synchronizer->ops->last_gate(synchronizer, out);
    return SP_OK;
}
